/** Prints a failing seed: its plan, the same made small, what happened, and how to see it again. */
import { planOf, shrink, simulate } from "../../src/testing/sim/index.js";
import type { SimResult, Plan, PlanOptions } from "../../src/testing/sim/index.js";
import { rejections } from "./rejections.js";

const TRACE_LINES = 40;
/** How long a plan is made smaller: some take seconds each, and whoever waits has a time limit too. */
const SHRINK_MS = 60_000;
const MOST_TRIES = 600;

export async function explain(plan: Plan, print: (line: string) => void): Promise<SimResult> {
  const run = (candidate: Plan): Promise<SimResult> => simulate(candidate, { rejections, trace: true });
  const startedAt = performance.now();
  const outcome = await run(plan);
  const tries = Math.min(MOST_TRIES, Math.ceil(SHRINK_MS / (performance.now() - startedAt)));
  const { violation } = outcome;
  if (violation === undefined) {
    print(
      `seed ${plan.seed}: no violation; ${outcome.terms} terms, ${outcome.faults} faults, hash ${outcome.hash}`,
    );
    return outcome;
  }
  print(`seed ${plan.seed}: ${violation.rule} at ${(violation.t / 1000).toFixed(3)} s: ${violation.detail}`);
  print(`plan: ${JSON.stringify(plan)}`);
  const { outcome: small, tries: tried } = await shrink(outcome, { run, tries });
  print(`shrunk to ${small.plan.faults.length} faults and ${small.plan.nodes} nodes in ${tried} tries:`);
  print(`plan: ${JSON.stringify(small.plan)}`);
  const lines = small.trace ?? [];
  if (lines.length > TRACE_LINES) print(`  (${lines.length - TRACE_LINES} lines before)`);
  for (const line of lines.slice(-TRACE_LINES)) print(`  ${line}`);
  print(`again: npm run sim -- --plan '${JSON.stringify(small.plan)}'`);
  return small;
}

export function explainSeed(
  seed: number,
  options: PlanOptions,
  print: (line: string) => void,
): Promise<SimResult> {
  return explain(planOf(seed, options), print);
}
