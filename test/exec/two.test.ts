/** Two wrappers on one machine, in one directory: killed and stopped, and never two commands. */
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Beats } from "./beats.js";
import { Duel, mixed } from "./faults.js";
import type { Verb } from "./faults.js";
import { scratch } from "./wrapped.js";

const LONG = process.env["CONCLAVE_LONG"] === "1";
const FAULTS = LONG ? { kill: 50, stop: 20 } : { kill: 3, stop: 2 };

const VERBS: readonly Verb[] = [
  { words: ["exec", "x"], endsOnLoss: false },
  { words: ["lock", "x"], endsOnLoss: true },
  { words: ["cron", "* * * * * *", "x"], endsOnLoss: false },
];

describe("the judge of heart beats", () => {
  const spansOf = (lines: readonly string[]): Beats => {
    const beats = new Beats(join(scratch(), "beats"));
    for (const line of lines) beats.add(line);
    return beats;
  };

  it("finds an overlap of one beat, also inside a longer term", () => {
    expect(spansOf(["a 1 1 100", "a 1 1 200", "b 2 1 201"]).findOverlaps().overlaps).toEqual([]);
    expect(spansOf(["a 1 1 100", "b 2 1 200", "a 1 2 200"]).findOverlaps().overlaps).toHaveLength(1);
    expect(
      spansOf(["a 1 1 100", "a 1 2 900", "b 2 1 200", "b 2 1 300", "c 3 1 800"]).findOverlaps().overlaps,
    ).toHaveLength(2);
  });
});

describe.each(VERBS)("two candidates in one directory: $words.0", (verb) => {
  it(
    `never run two commands at once: ${JSON.stringify(FAULTS)}`,
    async () => {
      const directory = scratch();
      const duel = new Duel(
        ["one", "two"].map((name) => ({ name, through: [] })),
        join(directory, "beats"),
        () => ["--lock-dir", join(directory, "lock"), "--ttl", "2s"],
        { verb },
      );
      const outcome = await duel.run(mixed(FAULTS));
      const slowest = Math.max(...outcome.afterKillMs);
      console.log(
        `${verb.words[0]} on files: ${outcome.terms} terms, 0 ms overlap, shortest gap ${outcome.shortestGapMs.toFixed(1)} ms, ` +
          `last beat at most ${slowest.toFixed(1)} ms after the wrapper was killed`,
      );
    },
    LONG ? 900_000 : 120_000,
  );
});
