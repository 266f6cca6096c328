/**
 * The schedule in virtual time, under every fault we know of; and the proof that
 * this finds something: each rule broken in turn, by a patch of the compiled
 * code, must be caught. CONCLAVE_LONG=1: twenty-five times as many.
 */
import { spawnSync } from "node:child_process";
import { cpSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { temporary } from "../fencing/rooms.js";
import { ROOT } from "../shape/sources.js";
import type { SimOutcome } from "./sim/world.js";

const SEEDS = process.env["CONCLAVE_LONG"] === "1" ? 1_000 : 40;

interface Total {
  readonly schedules: number;
  readonly runs: number;
  readonly repeats: number;
  readonly reported: number;
  readonly faults: number;
  readonly failed?: SimOutcome;
}

function simulate(build: string, seeds: number): Total {
  const run = spawnSync(process.execPath, [join(build, "test/cron/programs/simulate.js"), "1", `${seeds}`], {
    encoding: "utf8",
  });
  expect(run.stderr).toBe("");
  return JSON.parse(run.stdout) as Total;
}

interface Mutant {
  readonly name: string;
  readonly edits: readonly { readonly file: string; readonly find: string; readonly replace: string }[];
}

const CLAIM =
  "await this.#update((stored) => applyClaim(stored ?? this.#ledger, decision.run, decision.skipped, policy));";

const MUTANTS: readonly Mutant[] = [
  {
    name: "no claim",
    edits: [
      {
        file: "src/cron/leader.js",
        find: CLAIM,
        replace: "this.#ledger = applyClaim(this.#ledger, decision.run, decision.skipped, policy);",
      },
    ],
  },
  {
    name: "claim after run",
    edits: [
      { file: "src/cron/leader.js", find: CLAIM, replace: `this.#start(decision.run); ${CLAIM}` },
      { file: "src/cron/leader.js", find: "return this.#start(decision.run);", replace: "return;" },
    ],
  },
  {
    name: "instant from the local clock",
    edits: [
      {
        file: "src/cron/schedule.js",
        find: "const run = claim(due.at, 1, actor);",
        replace: "const run = claim(actor.now, 1, actor);",
      },
    ],
  },
  {
    name: "what a dead leader left behind is forgotten",
    edits: [
      {
        file: "src/cron/schedule.js",
        find: 'if (run.state !== "running" || run.token === actor.token)',
        replace: "if (run)",
      },
    ],
  },
  {
    name: "an attempt keeps its number",
    edits: [
      {
        file: "src/cron/schedule.js",
        find: "run: claim(run.at, run.attempt + 1, actor)",
        replace: "run: claim(run.at, run.attempt, actor)",
      },
    ],
  },
  {
    name: "answers overtake each other",
    edits: [
      {
        file: "src/cron/leader.js",
        find: "this.#updating.then(() => this.#change(change, afterwards))",
        replace: "this.#change(change, afterwards)",
      },
      {
        file: "src/cron/schedule.js",
        find: "current === undefined ? run.at <= ledger.cursor : !isOpen(current)",
        replace: "false",
      },
    ],
  },
  {
    name: "the cursor follows the clock back",
    edits: [
      {
        file: "src/cron/ledger.js",
        find: "cursor: Math.max(ledger.cursor, run.until ?? run.at)",
        replace: "cursor: run.until ?? run.at",
      },
      {
        file: "src/cron/schedule.js",
        find: "const first = timetable.next(ledger.cursor);",
        replace: "const first = timetable.next(Math.min(ledger.cursor, actor.now));",
      },
      {
        file: "src/cron/schedule.js",
        find: "current === undefined ? run.at <= ledger.cursor : !isOpen(current)",
        replace: "false",
      },
    ],
  },
];

test(`${SEEDS} seeds in both modes: no violation`, { timeout: 60_000 + SEEDS * 2_000 }, () => {
  const total = simulate(join(ROOT, ".build"), SEEDS);
  console.log(JSON.stringify(total));
  expect(total.failed).toBeUndefined();
  expect(total.schedules).toBe(2 * SEEDS);
  // It has been through something.
  expect(total.repeats).toBeGreaterThan(SEEDS / 10);
  expect(total.reported).toBeGreaterThan(SEEDS / 10);
});

describe("mutants", () => {
  test.each(MUTANTS)("$name is caught", { timeout: 120_000 }, async ({ name, edits }) => {
    const tree = await temporary();
    for (const folder of ["src", "test/cron/sim", "test/cron/programs"])
      cpSync(join(ROOT, ".build", folder), join(tree, folder), { recursive: true });
    writeFileSync(join(tree, "package.json"), '{ "type": "module" }\n');
    symlinkSync(join(ROOT, "node_modules"), join(tree, "node_modules"));
    for (const { file, find, replace } of edits) {
      const parts = readFileSync(join(tree, file), "utf8").split(find);
      expect(parts.length, `in ${file}, exactly once: ${find}`).toBe(2);
      writeFileSync(join(tree, file), parts.join(replace));
    }
    const { failed, schedules } = simulate(tree, 200);
    console.log(name, JSON.stringify({ schedules, violation: failed?.violation }));
    expect(failed?.violation).toBeDefined();
  });
});
