/** One run of the user's job: told to stop by the end of its term, by its time limit, or by neither. */
import type { Clock } from "../seam/clock.js";
import { ConclaveError, describe } from "../kit/errors.js";
import type { Term } from "../api/term.js";
import type { RunState } from "./ledger.js";

/** What a job is told about its run. */
export interface JobContext {
  /** The scheduled time this run is for: the same on every replica and every attempt. Use it as idempotency key. */
  readonly scheduledAt: Date;
  /** From 1. More than 1 only with `at-least-once`: earlier attempts may have run in part or in whole. */
  readonly attempt: number;
  /** Leadership under which it runs: `term.token` fences what the job writes. */
  readonly term: Term;
  /** Aborts when the term ends or the time limit is reached. A job that stops early throws: to return is to be done. */
  readonly signal: AbortSignal;
}

/** What a schedule runs. It should stop soon after its signal aborts. */
export type Job = (context: JobContext) => unknown;

export interface Ending {
  readonly state: Extract<RunState, "done" | "failed" | "timed-out" | "interrupted">;
  readonly note: string | null;
  readonly error?: unknown;
  /** It returned, but after it had been told to stop: whether it did all of its work, only the job knows. */
  readonly told?: boolean;
}

export interface RunningJob {
  /** How it ended, as far as it counts: at the time limit even if the job goes on. */
  readonly ended: Promise<Ending>;
  /** When the job itself has settled. Neither rejects. */
  readonly settled: Promise<void>;
}

export function startJob(
  clock: Clock,
  job: Job,
  context: Omit<JobContext, "signal">,
  timeoutMs: number | undefined,
  onTermEnd: (listener: () => void) => () => void,
): RunningJob {
  const { term } = context;
  const controller = new AbortController();
  let timer: ReturnType<Clock["after"]> | undefined;
  const unlink = onTermEnd(() => {
    timer?.cancel(); // it was interrupted: how long it then takes to stop does not make it late
    controller.abort(term.signal.reason);
  });
  const limit = new Promise<Ending>((resolve) => {
    if (timeoutMs === undefined) return;
    timer = clock.after(timeoutMs, () => {
      const error = new ConclaveError("timeout", `the job did not end within ${timeoutMs} ms`);
      controller.abort(error);
      resolve({ state: "timed-out", note: error.message, error });
    });
  });
  const working = begin(job, { ...context, signal: controller.signal });
  const finished = working.then(
    (): Ending => ({ state: "done", note: null, told: term.signal.aborted }),
    (error: unknown): Ending =>
      term.signal.aborted
        ? { state: "interrupted", note: "the term ended during the run", error }
        : { state: "failed", note: describe(error), error },
  );
  void finished.then(() => {
    timer?.cancel();
    unlink();
  });
  return { ended: Promise.race([finished, limit]), settled: finished.then(() => {}) };
}

async function begin(job: Job, context: JobContext): Promise<void> {
  await job(context);
}
