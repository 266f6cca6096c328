/**
 * That the simulator finds something, in every run of the tests: those mutants
 * that few schedules suffice for. `npm run sim:mutants` tries all of them.
 */
import { join } from "node:path";
import { expect, test } from "vitest";
import { ROOT } from "../shape/sources.js";
import { ALL_MUTANTS } from "./all-mutants.js";
import { tryMutant } from "./mutant-run.js";

const BUILD = { directory: join(ROOT, ".build"), modules: join(ROOT, "node_modules") };
/** Twice as many as the slowest of these needs. */
const SEEDS = 150;

const QUICK = [
  "no margin",
  "held is a flag set by a timer",
  "what nobody follows any more is removed at once",
  "an heir is ignored: etcd",
  "a higher priority takes over at once",
  "cron: no claim",
  "cron: claim after run",
  "cron: instant from the local clock",
  "cron: begins without looking whether it still leads",
  "cron: what a dead leader left behind is forgotten",
  "cron: an attempt keeps its number",
  "cron: the cursor follows the clock back",
];

test.each(QUICK)("%s: is caught", { timeout: 120_000 }, async (name) => {
  const mutant = ALL_MUTANTS.find((each) => each.name === name);
  expect(mutant, "there is such a mutant").toBeDefined();
  const { caught, problem } = await tryMutant(mutant!, SEEDS, BUILD);
  expect(problem).toBeUndefined();
  expect(caught).toBeDefined();
});
