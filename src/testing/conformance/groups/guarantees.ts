/** What a backend declares is used by core and printed in the docs: it must be one of the known words. */
import { resolveTiming } from "../../../law/timing.js";
import { check, show } from "../check.js";
import type { Group } from "../group.js";
import { heirs, honours, WISHES } from "./heirs.js";

const WORDS = {
  exclusion: ["linearizable", "single-primary", "best-effort"],
  expiry: ["observer", "store", "connection", "quorum"],
  token: ["record", "revision", "term", "unfenced"],
  succession: ["fifo", "unordered"],
} as const;

export const guarantees: Group = {
  name: "guarantees are declared",
  cases: [
    {
      name: "in known words and sane numbers",
      async run(stage) {
        const { name, guarantees } = await stage.open();
        check(
          /^[a-z][a-z0-9-]*$/.test(name),
          `the backend's name is ${show(name)}; use lower-case letters, digits and dashes`,
        );
        for (const [field, words] of Object.entries(WORDS)) {
          const word: unknown = Reflect.get(guarantees, field);
          check(
            (words as readonly unknown[]).includes(word),
            `guarantees.${field} is ${show(word)}; it must be one of ${words.join(", ")}`,
          );
        }
        for (const wish of guarantees.honours ?? [])
          check(
            WISHES.includes(wish),
            `guarantees.honours has ${show(wish)}; known are ${WISHES.join(", ")}`,
          );
        const { minMs, stepMs } = guarantees.ttl;
        check(Number.isFinite(minMs) && minMs >= 1 && minMs <= 60_000, `guarantees.ttl.minMs is ${minMs}`);
        check(
          Number.isFinite(stepMs) && stepMs >= 1 && stepMs <= 60_000,
          `guarantees.ttl.stepMs is ${stepMs}`,
        );
        check(
          guarantees.exclusion === "best-effort" || guarantees.token !== "unfenced",
          "a backend without fencing tokens is best-effort",
        );
      },
    },
    {
      name: "the same by every backend of the store",
      async run(stage) {
        const [a, b] = await stage.openMany(2);
        check(
          show(a!.guarantees) === show(b!.guarantees) && a!.name === b!.name,
          "two backends of one store declare different things",
        );
      },
    },
    {
      name: "and a wish about who leads next is skipped only where it is declared not to be honoured",
      async run(stage) {
        const { guarantees } = await stage.open();
        for (const { name, wishes = [] } of heirs.cases) {
          if (wishes.length === 0) continue;
          const title = `${heirs.name}: ${name}`;
          const ignored = wishes.find((wish) => !honours(guarantees, wish));
          const skipped = stage.skips(heirs.name, name);
          check(
            ignored === undefined || skipped,
            `guarantees.honours leaves "${ignored}" out: list "${title}" in skips, with the reason`,
          );
          check(
            ignored !== undefined || !skipped,
            `"${title}" is skipped, but guarantees.honours has ${wishes.join(" and ")}: leave one of them out`,
          );
        }
      },
    },
    {
      name: "and default timings fit together",
      async run(stage) {
        const { timing, guarantees } = await stage.open();
        resolveTiming({}, timing ?? {}, guarantees); // throws with the arithmetic
      },
    },
  ],
};
