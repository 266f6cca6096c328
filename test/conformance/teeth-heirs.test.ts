/** The suite bites: backends that are sound but for whom they let lead next. */
import { describe, expect, it } from "vitest";
import { untilAborted } from "../../src/kit/wait.js";
import type { Wish } from "../../src/seam/backend.js";
import { ConformanceFailure, conformanceTests } from "../../src/testing/conformance/index.js";
import { holds, outcome, override } from "../support/suite-mutants.js";
import type { Mutant } from "../support/suite-mutants.js";

/** What does not come is waited for no longer than this. */
const HASTY = { patienceMs: 3_000 };
const LONG_MS = 60_000;
const next = (name: string): string => `who leads next: ${name}`;

/** Candidates that are asked how long they stand back answer something else. */
const standingBack =
  (ms: (asked: number) => number): Mutant =>
  () => ({
    backend: (backend) => ({
      campaign: (candidacy, options) => {
        const { standBackMs } = candidacy;
        if (standBackMs === undefined) return backend.campaign(candidacy, options);
        return backend.campaign({ ...candidacy, standBackMs: () => ms(standBackMs()) }, options);
      },
    }),
  });

/** A backend that declares no more than these wishes. */
const declares =
  (honours: readonly Wish[]): Mutant =>
  () => ({ backend: ({ guarantees }) => ({ guarantees: { ...guarantees, honours } }) });

const withoutHeir = holds((hold) => ({ release: ({ signal }) => hold.release({ signal }) }));

const MUTANTS: readonly (readonly [what: string, test: string, mutant: Mutant])[] = [
  [
    "ignores the heir",
    next("the one who is named leads, though others waited longer and look more often"),
    withoutHeir,
  ],
  [
    "ignores the heir that is named by what people call it",
    next("handed round by name, nobody leads in between, and tokens rise"),
    holds((hold) => ({
      release: ({ signal, heir }) =>
        hold.release({ signal, ...(heir?.candidate.includes("-") === true && { heir }) }),
    })),
  ],
  [
    "lets a second one lead before the first has gone",
    next("handed round by name, nobody leads in between, and tokens rise"),
    () => ({
      backend: (backend) => ({
        campaign: (candidacy, options) => {
          const elsewhere = candidacy.candidate.startsWith("b-") ? "-elsewhere" : "";
          return backend.campaign({ ...candidacy, election: candidacy.election + elsewhere }, options);
        },
      }),
    }),
  ],
  [
    "honours the heir for ever",
    next("an heir that does not stand is waited for no longer than was asked"),
    () => ({
      parts: ({ leases }) => {
        let reads = 0;
        return {
          leases: override(leases, {
            // The vacancy is a new one at each look, so its time never ends.
            read: async (key, options) => {
              const entry = await leases.read(key, options);
              return entry?.record.heir === undefined ? entry : { ...entry, renewalId: `${++reads}` };
            },
          }),
        };
      },
    }),
  ],
  [
    "honours the heir twice as long as was asked",
    next("an heir that does not stand is waited for no longer than was asked"),
    holds((hold) => ({
      release: ({ signal, heir }) =>
        hold.release({ signal, ...(heir && { heir: { ...heir, forMs: 2 * heir.forMs } }) }),
    })),
  ],
  [
    "names the heir of an earlier release again",
    next("a release without an heir keeps nobody waiting"),
    holds((hold) => ({
      release: ({ signal, heir = { candidate: "heir-gone", forMs: 60_000 } }) =>
        hold.release({ signal, heir }),
    })),
  ],
  [
    "lets nobody go first",
    next("who stands back lets another go first, though it waited longer"),
    standingBack(() => 0),
  ],
  [
    "never leads if it stands back",
    next("who stands back leads if nobody else comes"),
    () => ({
      backend: (backend) => ({
        campaign: (candidacy, options) =>
          candidacy.standBackMs === undefined
            ? backend.campaign(candidacy, options)
            : untilAborted(options.signal, new Promise<never>(() => {})),
      }),
    }),
  ],
  [
    "makes the heir stand back too",
    next("who is named does not stand back"),
    () => ({
      backend: (backend) => ({
        // By another id it is not known as the one who was named.
        campaign: (candidacy, options) =>
          candidacy.standBackMs === undefined
            ? backend.campaign(candidacy, options)
            : backend.campaign({ ...candidacy, candidate: `other-${candidacy.candidate}` }, options),
      }),
    }),
  ],
  [
    "honours no heir, and declares it, but the test is not skipped",
    "guarantees are declared: and a wish about who leads next is skipped only where it is declared not to be honoured",
    declares(["stand-back"]),
  ],
  [
    "declares a wish that nobody knows",
    "guarantees are declared: in known words and sane numbers",
    declares(["fairness" as Wish]),
  ],
];

describe("the conformance suite notices a backend that", () => {
  it.concurrent.each(MUTANTS)(
    "%s",
    async (_, title, mutant) => {
      expect(conformanceTests()).toContain(title);
      const error = await outcome(title, mutant, HASTY);
      expect(error).toBeInstanceOf(Error);
      // Too long only once may be the machine; three times is the backend.
      expect([ConformanceFailure.name, "Inconclusive"]).toContain((error as Error).name);
    },
    LONG_MS,
  );

  it("honours heirs, yet is excused from them", async () => {
    const title = MUTANTS.at(-2)![1];
    const skips = conformanceTests()
      .filter((test) => test.startsWith("who leads next: the one who is named"))
      .map((test) => ({ test, reason: "it fails" }));
    expect(skips).toHaveLength(1);
    expect(String(await outcome(title, () => ({}), { skips }))).toContain("leave one of them out");
    expect(await outcome(title, declares([]))).toBeInstanceOf(ConformanceFailure);
  });

  it("and has nothing against a sound one", { timeout: LONG_MS }, async () => {
    const titles = [...new Set(MUTANTS.map(([, title]) => title))];
    const errors = await Promise.all(titles.map((title) => outcome(title, () => ({}))));
    expect(errors.filter((error) => error !== undefined)).toEqual([]);
  });
});
