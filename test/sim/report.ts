/** Prints a failing seed: its plan, the same made small, what happened, and how to see it again. */
import { planOf, shrink, simulate } from "../../src/testing/sim/index.js";
import type { SimResult, Plan, PlanOptions } from "../../src/testing/sim/index.js";
import { rejections } from "./rejections.js";

const TRACE_LINES = 40;

export async function explain(plan: Plan, print: (line: string) => void): Promise<SimResult> {
  const run = (candidate: Plan): Promise<SimResult> => simulate(candidate, { rejections, trace: true });
  const outcome = await run(plan);
  const { violation } = outcome;
  if (violation === undefined) {
    print(
      `seed ${plan.seed}: no violation; ${outcome.terms} terms, ${outcome.faults} faults, hash ${outcome.hash}`,
    );
    return outcome;
  }
  print(`seed ${plan.seed}: ${violation.rule} at ${(violation.t / 1000).toFixed(3)} s: ${violation.detail}`);
  print(`plan: ${JSON.stringify(plan)}`);
  const { outcome: small, tries } = await shrink(outcome, { run });
  print(`shrunk to ${small.plan.faults.length} faults and ${small.plan.nodes} nodes in ${tries} tries:`);
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
