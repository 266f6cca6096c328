/**
 * npm run sim -- --seeds 10000            so many schedules, on two processes
 *                --from 1                 beginning with this seed
 *                --stores observer,file   only these stores
 *                --subject schedule       only plans with a schedule; or election: without
 *                --seed 4711              one schedule, with its trace if it fails
 *                --plan '{…}'             one schedule, as printed by a failure
 */
import { parseArgs } from "node:util";
import { STORE_KINDS, SUBJECTS } from "../../src/testing/sim/index.js";
import type { CronCounts, Plan, PlanOptions, StoreKind, SubjectKind } from "../../src/testing/sim/index.js";
import { Worker } from "./pool.js";
import { explain, explainSeed } from "./report.js";
import type { BatchResult, Failure } from "./worker.js";

const WORKERS = 2;
const BATCH = 50;
/** One in a hundred is run twice. */
const TWICE_EVERY = 100;
/** Failures that are explained at length. */
const EXPLAINED = 3;

interface Totals {
  seeds: number;
  terms: number[];
  faults: number[];
  leastVirtualMs: number;
  events: number;
  accepted: number;
  refused: number;
  cron: CronCounts[];
  twice: number;
  failures: Failure[];
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      seeds: { type: "string", default: "1000" },
      from: { type: "string", default: "1" },
      seed: { type: "string" },
      plan: { type: "string" },
      stores: { type: "string" },
      subject: { type: "string" },
    },
  });
  const stores = values.stores?.split(",").map(storeKind);
  const subject = values.subject === undefined ? undefined : subjectKind(values.subject);
  const options: PlanOptions = stores === undefined ? { subject } : { stores, subject };
  if (values.plan !== undefined) {
    return (await explain(JSON.parse(values.plan) as Plan, print)).violation === undefined ? 0 : 1;
  }
  if (values.seed !== undefined) {
    return (await explainSeed(whole("--seed", values.seed), options, print)).violation === undefined ? 0 : 1;
  }
  return runMany(whole("--from", values.from), whole("--seeds", values.seeds), options);
}

async function runMany(from: number, seeds: number, options: PlanOptions): Promise<number> {
  const startedAt = performance.now();
  const totals = await collect(from, seeds, options);
  const seconds = (performance.now() - startedAt) / 1000;
  for (const failure of totals.failures.slice(0, EXPLAINED)) {
    if (failure.rule === "determinism") print(`seed ${failure.seed}: two runs differ: ${failure.detail}`);
    else await explainSeed(failure.seed, options, print);
    print("");
  }
  for (const { seed, store, rule, detail } of totals.failures.slice(EXPLAINED, 20)) {
    print(`seed ${seed} (${store}): ${rule}: ${detail}`);
  }
  const complaints = complaintsAbout(totals);
  for (const complaint of complaints) print(complaint);
  print(
    `${totals.events} events in ${seconds.toFixed(1)} s (${(totals.seeds / seconds).toFixed(0)} schedules/s); ` +
      `median ${median(totals.terms)} terms; resource took ${totals.accepted} and refused ${totals.refused} writes; ` +
      `${totals.twice} schedules run twice with equal traces`,
  );
  if (totals.cron.length > 0) print(`${totals.cron.length} of them with cron: ${cronLine(totals.cron)}`);
  print(
    `${totals.seeds} schedules, ${sum(totals.terms)} terms, ${sum(totals.faults)} faults, ${totals.failures.length} violations`,
  );
  return totals.failures.length === 0 && complaints.length === 0 ? 0 : 1;
}

async function collect(from: number, seeds: number, options: PlanOptions): Promise<Totals> {
  const totals: Totals = {
    seeds: 0,
    terms: [],
    faults: [],
    leastVirtualMs: Infinity,
    events: 0,
    accepted: 0,
    refused: 0,
    cron: [],
    twice: 0,
    failures: [],
  };
  let next = from;
  const end = from + seeds;
  const work = async (worker: Worker): Promise<void> => {
    while (next < end) {
      const batch = {
        from: next,
        count: Math.min(BATCH, end - next),
        ...options,
        twiceEvery: TWICE_EVERY,
        stopAtFirst: false,
      };
      next += batch.count;
      add(totals, await worker.run(batch));
    }
  };
  const workers = Array.from({ length: WORKERS }, () => new Worker());
  try {
    await Promise.all(workers.map(work));
  } finally {
    for (const worker of workers) worker.stop();
  }
  totals.failures.sort((a, b) => a.seed - b.seed);
  return totals;
}

function add(totals: Totals, result: BatchResult): void {
  totals.seeds += result.seeds;
  totals.terms.push(...result.terms);
  totals.faults.push(...result.faults);
  totals.leastVirtualMs = Math.min(totals.leastVirtualMs, result.leastVirtualMs);
  totals.events += result.events;
  totals.accepted += result.accepted;
  totals.refused += result.refused;
  totals.cron.push(...result.cron);
  totals.twice += result.twice;
  totals.failures.push(...result.failures);
}

/** A run that tested nothing must not be green. */
function complaintsAbout(totals: Totals): string[] {
  const complaints: string[] = [];
  if (median(totals.terms) < 5)
    complaints.push(`RED: the median schedule has ${median(totals.terms)} terms; at least 5 are needed`);
  const fewest = Math.min(...totals.faults);
  if (fewest < 8) complaints.push(`RED: a schedule had ${fewest} faults; at least 8 are needed`);
  if (totals.leastVirtualMs < 60_000)
    complaints.push(`RED: a schedule lasted ${totals.leastVirtualMs} ms; at least 60000 are needed`);
  const { cron } = totals;
  if (cron.length > 0 && median(cron.map(({ runs }) => runs)) < 10)
    complaints.push("RED: the median schedule with cron has fewer than 10 runs");
  const never = (["repeats", "missed", "skipped"] as const).filter((key) => cron.every((each) => !each[key]));
  if (cron.length >= 50 && never.length > 0)
    complaints.push(`RED: in ${cron.length} schedules with cron there were no ${never.join(", no ")}`);
  return complaints;
}

function cronLine(counts: readonly CronCounts[]): string {
  const total = (key: keyof CronCounts): number => sum(counts.map((each) => each[key]));
  return (
    `${total("instants")} instants, ${total("runs")} runs, ${total("repeats")} of them repeats, ` +
    `${total("missed")} instants reported as missed, ${total("skipped")} times some as skipped`
  );
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[numbers.length >> 1] ?? 0;
}

function whole(name: string, text: string): number {
  const number = Number(text);
  if (!Number.isSafeInteger(number) || number < 0)
    throw new Error(`${name} takes a whole number, not "${text}"`);
  return number;
}

function storeKind(text: string): StoreKind {
  const kind = STORE_KINDS.find((store) => store === text);
  if (kind === undefined) throw new Error(`--stores takes ${STORE_KINDS.join(", ")}; not "${text}"`);
  return kind;
}

function subjectKind(text: string): SubjectKind {
  const kind = SUBJECTS.find((subject) => subject === text);
  if (kind === undefined) throw new Error(`--subject takes ${SUBJECTS.join(", ")}; not "${text}"`);
  return kind;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 2;
}
