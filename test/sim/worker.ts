/** Runs batches of seeds for the runner, in a process of its own. */
import { planOf, simulate } from "../../src/testing/sim/index.js";
import type { CronCounts, SimResult, Rule, StoreKind, SubjectKind } from "../../src/testing/sim/index.js";
import { useFastAbort, useRealAbort } from "./fast-abort.js";
import { rejections } from "./rejections.js";

export interface Batch {
  readonly from: number;
  readonly count: number;
  readonly stores?: readonly StoreKind[] | undefined;
  readonly subject?: SubjectKind | undefined;
  /** Every how many seeds one is run a second time. Zero: none. */
  readonly twiceEvery: number;
  readonly stopAtFirst: boolean;
  readonly ignore?: readonly Rule[] | undefined;
}

export interface Failure {
  readonly seed: number;
  readonly store: StoreKind;
  readonly rule: string;
  readonly detail: string;
}

export interface BatchResult {
  readonly seeds: number;
  readonly terms: readonly number[];
  readonly faults: readonly number[];
  readonly leastVirtualMs: number;
  readonly events: number;
  readonly accepted: number;
  readonly refused: number;
  /** Of each plan with a schedule. */
  readonly cron: readonly CronCounts[];
  readonly twice: number;
  readonly failures: readonly Failure[];
}

async function runBatch(batch: Batch): Promise<BatchResult> {
  const outcomes: SimResult[] = [];
  const failures: Failure[] = [];
  let twice = 0;
  for (let seed = batch.from; seed < batch.from + batch.count; seed++) {
    const { stores, subject } = batch;
    const plan = planOf(seed, stores === undefined ? { subject } : { stores, subject });
    useFastAbort();
    const outcome = await simulate(plan, { rejections, ignore: batch.ignore ?? [] });
    outcomes.push(outcome);
    const { violation } = outcome;
    if (violation !== undefined) failures.push({ seed, store: plan.store, ...violation });
    if (batch.twiceEvery > 0 && seed % batch.twiceEvery === 0) {
      useRealAbort();
      const again = await simulate(plan, { rejections });
      twice++;
      if (again.hash !== outcome.hash) {
        failures.push({
          seed,
          store: plan.store,
          rule: "determinism",
          detail: `${outcome.hash} and then ${again.hash}`,
        });
      }
    }
    if (batch.stopAtFirst && failures.length > 0) break;
  }
  return {
    seeds: outcomes.length,
    terms: outcomes.map(({ terms }) => terms),
    faults: outcomes.map(({ faults }) => faults),
    leastVirtualMs: Math.min(...outcomes.map(({ virtualMs }) => virtualMs)),
    events: sum(outcomes.map(({ events }) => events)),
    accepted: sum(outcomes.map(({ accepted }) => accepted)),
    refused: sum(outcomes.map(({ refused }) => refused)),
    cron: outcomes.flatMap(({ cron }) => cron ?? []),
    twice,
    failures,
  };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

process.on("message", (batch: Batch) => {
  runBatch(batch).then(
    (result) => process.send?.(result),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
