/** One term's work inside `run()`: started once, stopped by the term's signal, waited for before anything else happens. */
import type { Clock } from "../seam/clock.js";
import { ConclaveError, isConclaveError } from "../kit/errors.js";
import type { Tenure } from "../law/tenure.js";
import type { Term } from "../api/term.js";
import { onAbort, sleep } from "../kit/wait.js";

/** What a leader does. It should stop soon after `term.signal` aborts. */
export type Work = (term: Term) => void | Promise<void>;

export type WorkResult =
  | { readonly kind: "returned" }
  | { readonly kind: "failed"; readonly error: unknown }
  | { readonly kind: "stuck" };

export interface ServeOptions {
  readonly clock: Clock;
  /** Ends the term on purpose. */
  readonly stop: AbortSignal;
  /** How long after the end of its term work may go on before that is reported. */
  readonly patienceMs: number;
  readonly stuck: (error: unknown) => void;
}

/**
 * Does one term. Returns when the term is over *and* its work has settled: as
 * long as old work may act, no new term may begin. Only if the caller wants to
 * stop for good is work that ignores its signal left behind.
 */
export async function serve(tenure: Tenure, work: Work, options: ServeOptions): Promise<WorkResult> {
  // The tenure knows of the work before it begins: its first line may resign, and is to be waited for too.
  const working = Promise.resolve().then(() => begin(tenure, work, options.stop));
  tenure.serve(working);
  const unlink = onAbort(options.stop, () => {
    void tenure.end("resigned", "the candidate was stopped", working);
  });
  const finished = working.then((outcome) => {
    void tenure.end("resigned", outcome.kind === "failed" ? "the work failed" : "the work returned", working);
    return outcome;
  });
  await tenure.ended;
  unlink();
  return settle(tenure, finished, options);
}

async function begin(tenure: Tenure, work: Work, stop: AbortSignal): Promise<WorkResult> {
  try {
    if (tenure.held && !tenure.stopping && !stop.aborted) await work(tenure.term);
    return { kind: "returned" };
  } catch (error) {
    return toldToStop(tenure, error) ? { kind: "returned" } : { kind: "failed", error };
  }
}

/** Work that rejects because its term is over has not failed. What else it throws on its way out is its own fault. */
function toldToStop(tenure: Tenure, error: unknown): boolean {
  if (!tenure.stopping) return false;
  if (error === tenure.signal.reason || (error instanceof Error && error.name === "AbortError")) return true;
  return isConclaveError(error) && (error.code === "not-leader" || error.code === "stale-leader");
}

async function settle(
  tenure: Tenure,
  finished: Promise<WorkResult>,
  options: ServeOptions,
): Promise<WorkResult> {
  const end = tenure.over;
  const waiting = new AbortController();
  // Work that was given its time to drain and did not use it gets no more.
  const ranOut = end?.drained === false && (end.reason === "resigned" || end.reason === "closed");
  const patience = sleep(options.clock, ranOut ? 0 : options.patienceMs, waiting.signal).then(
    (): WorkResult => ({
      kind: "stuck",
    }),
  );
  const outcome = await Promise.race([finished, patience]);
  waiting.abort();
  if (outcome.kind !== "stuck") return outcome;
  options.stuck(
    new ConclaveError(
      "state",
      `the work of term ${tenure.token} is still running after its end; this candidate does not campaign again before it settles. Make the work honour term.signal.`,
    ),
  );
  const stopped = new Promise<WorkResult>((resolve) => {
    const unlink = onAbort(options.stop, () => resolve(outcome));
    void finished.finally(unlink);
  });
  return Promise.race([finished, stopped]);
}
