/**
 * What somebody gets who pastes a line of the documentation, or a snippet, onto two machines: one leader, or a refusal, or a warning.
 * Each command and each snippet is found, and each that campaigns really runs on two machines, under the addresses that it names.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { manifests } from "./manifests.js";
import { examples, isLocal, lotOf, PAGES } from "./examples.js";
import type { Example } from "./examples.js";
import { lacking, Machines, stores } from "./machines.js";
import { inContainer, onBoth, overlaps, prepare, runsOnBoth, saysWhy, termsOf, tidy } from "./pasting.js";

const why = lacking();
if (why !== undefined) console.warn(`\nNothing was pasted onto two machines: ${why}.\n`);

const all = await examples();
const lots = all.map((example) => ({ example, lot: lotOf(example) }));
const of = (lot: string): Example[] =>
  lots.filter((one) => one.lot.lot === lot).map(({ example }) => example);
const LONG = process.env["CONCLAVE_LONG"] === "1";
/** Lines that differ in nothing are tried once; in the short form those with the same command, flags and store. */
const distinct = (examples: readonly Example[], long = LONG): Example[] => [
  ...new Map(
    examples.map((example) => [long ? `${example.before}\n${example.text}` : kindOf(example), example]),
  ).values(),
];
const kindOf = ({ kind, before, text }: Example): string => {
  if (kind === "snippet") return text;
  const own = text.split(" -- ")[0]!;
  const verb = /\bconclave [a-z]+/.exec(own)?.[0];
  return [
    verb,
    /\b[a-z]+:(?=\/\/|\?)/.exec(before + own)?.[0],
    ...(own.match(/--[a-z-]+/g) ?? []).sort(),
  ].join(" ");
};
const titled = (examples: readonly Example[]): [string, Example][] =>
  examples.map((example) => [
    `${example.where} ${example.kind === "command" ? example.text : "snippet"}`,
    example,
  ]);

const running = distinct(of("runs")).filter((example) => storeOf(example) !== undefined);

/** Without the line that names their store. */
const bare = distinct(
  [...of("runs"), ...of("asks")]
    .filter(
      ({ kind, text }) => kind === "command" && !/--backend|CONCLAVE_BACKEND/.test(text) && !isLocal(text),
    )
    .map((example) => ({ ...example, before: "" })),
);

/** Of those that can be started here. */
function storeOf({ before, text }: Example): string | undefined {
  if (/postgres:/.test(text + before)) return stores.postgres ? "postgres" : undefined;
  if (/redis:/.test(text + before)) return stores.redis ? "redis" : undefined;
  return "etcd";
}

describe("commands and snippets", () => {
  it("are found, in every page and help text that has some", () => {
    const count = (kind: string): number => all.filter((example) => example.kind === kind).length;
    const reasons = lots.filter(({ lot }) => lot.lot === "no").length;
    console.log(
      `${count("command")} commands and ${count("snippet")} snippets; ${of("runs").length} campaign on a shared store ` +
        `(${distinct(of("runs"), true).length} distinct, ${running.length} tried), ${of("one machine").length} say that one machine is meant, ` +
        `${of("asks").length} ask, ${reasons} start no candidate`,
    );
    expect(count("command")).toBeGreaterThan(120);
    expect(count("snippet")).toBeGreaterThan(40);
    expect(of("runs").length).toBeGreaterThan(35);
    const found = new Set(all.map(({ where }) => where.replace(/:\d+$/, "")));
    for (const place of ["README.md", "docs/guide/cron.md", "deploy/README.md", "conclave cron --help"])
      expect(found).toContain(place);
    expect(PAGES.length).toBeGreaterThan(20);
  });

  it("that campaign name a store, or say that one machine is meant", () => {
    for (const example of of("runs")) {
      const text = `${example.before}\n${example.text}`;
      expect(text, example.where).toMatch(/(?:etcd|postgres|redis):\/\//);
      expect(text, `${example.where}: an address that is another store on each machine`).not.toMatch(
        /:\/\/(?:localhost|127\.)/,
      );
    }
  });

  it("and one that fits no rule is noticed", () => {
    const like = (text: string): Example => ({ where: "x", kind: "command", text, before: "", block: text });
    expect(() => lotOf(like("frobnicate mailer"))).toThrow(/no rule/);
    expect(() => lotOf(like("conclave run x --backend file:"))).toThrow(/one machine/);
    expect(() => lotOf({ ...like('await openElection({ backend: "file:" })'), kind: "snippet" })).toThrow(
      /one machine/,
    );
    expect(lotOf(like("npx conclave exec x -- ./x.sh")).lot).toBe("runs");
  });

  it.each(manifests())("$file names a store", ({ store }) => {
    expect(store).toMatch(/^(?:etcd:\/\/|postgres:\/\/|redis:\/\/|kubernetes:)/);
  });
});

describe.skipIf(why !== undefined)("pasted onto two machines", { timeout: 60_000 }, () => {
  let machines: Machines;
  let folder = "";

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "conclave-machines-"));
    prepare();
    machines = new Machines(folder);
    await machines.start(
      ["web-1", "web-2"],
      running.map((_, index) => `p${index}`),
    );
  }, 60_000);
  afterAll(async () => {
    await machines.close();
    tidy();
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
  });

  const oneLeads = async (example: Example): Promise<void> => {
    const outcome = await onBoth(machines.machines, example, running.indexOf(example));
    const terms = termsOf(outcome.notes);
    expect(terms.length, outcome.text).toBeGreaterThan(0);
    expect(overlaps(terms), outcome.text).toEqual([]);
    const tokens = terms.map(({ election, token }) => `${election} ${token}`);
    expect(new Set(tokens).size, outcome.text).toBe(tokens.length);
    for (const { machine, led, ended, text } of outcome.machines)
      if (!led)
        expect(ended && (saysWhy(text) || triesOnce(example)), `${machine} never led:\n${outcome.text}`).toBe(
          true,
        );
  };
  const coordinated = running.filter(({ text }) => text.includes("setRunCoordinator("));
  const listening = running.filter(({ text }) => /\bserve\b/.test(text));
  const apart = running.filter((example) => ![...coordinated, ...listening].includes(example));

  describe.concurrent("one leads at a time", () => {
    it.each(titled(apart))("%s", async (_title, example) => oneLeads(example));
  });

  describe("one leads at a time, and each machine listens at the same port", () => {
    it.each(titled(listening))("%s", async (_title, example) => oneLeads(example));
  });

  it.concurrent.each(titled(coordinated))("each run once: %s", async (_title, example) => {
    const { seconds, runs, text } = await runsOnBoth(machines.machines, example, running.indexOf(example));
    const all = runs.reduce((sum, count) => sum + count);
    expect(all, text).toBeGreaterThan(0);
    // One a second on all machines together; one on each would be twice as many.
    expect(all, `${all} runs in ${seconds} s`).toBeLessThanOrEqual(seconds + 2);
  });

  it("and machines that share nothing would be noticed: both lead, with files", async () => {
    const text = "conclave run mailer --backend file:";
    const outcome = await onBoth(
      machines.machines,
      { where: "x", kind: "command", text, before: "", block: text },
      running.length,
    );
    expect(outcome.machines.every(({ led }) => led)).toBe(true);
    expect(overlaps(termsOf(outcome.notes))).not.toEqual([]);
  });

  describe.concurrent("without its store, in a container, it refuses or warns", () => {
    it.each(titled(bare))("%s", async (_title, example) => {
      const { code, text } = await inContainer(machines.machines[0]!, example, bare.indexOf(example));
      if (refuses(example)) expect(code, text).toBe(2);
      expect(text).toMatch(/no store was named, and this is a container/);
    });
  });
});

/** One attempt, perhaps without a word: where nothing is shared it would have led. */
function triesOnce({ text }: Example): boolean {
  return /--try\b|\.try[A-Z]/.test(text);
}

/** Unless another command decides the code of the line. */
function refuses({ text }: Example): boolean {
  return /\bconclave (?:exec|lock|cron(?! status))\b/.test(text) && !text.includes("||");
}
