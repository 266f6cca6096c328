/** One term's work inside `run()`: started once, stopped by the term's signal, waited for before anything else happens. */
import type { Clock } from "./clock.js";
import { ConclaveError, isConclaveError } from "./errors.js";
import type { Keeper } from "./keeper.js";
import type { Term } from "./term.js";
import { onAbort, sleep } from "./waiting.js";

export type Work = (term: Term) => void | Promise<void>;

export type Outcome =
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
export async function serve(keeper: Keeper, work: Work, options: ServeOptions): Promise<Outcome> {
  const { term } = keeper;
  // The keeper knows of the work before it begins: its first line may resign, and is to be waited for too.
  const working = Promise.resolve().then(() => begin(term, work, options.stop));
  keeper.serve(working);
  const unlink = onAbort(options.stop, () => {
    void keeper.end("resigned", "the candidate was stopped", working);
  });
  const finished = working.then((outcome) => {
    void keeper.end("resigned", outcome.kind === "failed" ? "the work failed" : "the work returned", working);
    return outcome;
  });
  await term.ended;
  unlink();
  return settle(term, finished, options);
}

async function begin(term: Term, work: Work, stop: AbortSignal): Promise<Outcome> {
  try {
    if (term.held && !term.stopping && !stop.aborted) await work(term);
    return { kind: "returned" };
  } catch (error) {
    return toldToStop(term.signal, error) ? { kind: "returned" } : { kind: "failed", error };
  }
}

/** Work that rejects because its term is over has not failed. What else it throws on its way out is its own fault. */
function toldToStop(signal: AbortSignal, error: unknown): boolean {
  if (!signal.aborted) return false;
  if (error === signal.reason || (error instanceof Error && error.name === "AbortError")) return true;
  return isConclaveError(error) && (error.code === "not-leader" || error.code === "stale-leader");
}

async function settle(term: Term, finished: Promise<Outcome>, options: ServeOptions): Promise<Outcome> {
  const waiting = new AbortController();
  // Work that was given its time to drain and did not use it gets no more.
  const ranOut =
    term.end?.drained === false && (term.end.reason === "resigned" || term.end.reason === "closed");
  const patience = sleep(options.clock, ranOut ? 0 : options.patienceMs, waiting.signal).then(
    (): Outcome => ({
      kind: "stuck",
    }),
  );
  const outcome = await Promise.race([finished, patience]);
  waiting.abort();
  if (outcome.kind !== "stuck") return outcome;
  options.stuck(
    new ConclaveError(
      "state",
      `the work of term ${term.token} is still running after its end; this candidate does not stand again before it settles. Make the work honour term.signal.`,
    ),
  );
  const stopped = new Promise<Outcome>((resolve) => {
    const unlink = onAbort(options.stop, () => resolve(outcome));
    void finished.finally(unlink);
  });
  return Promise.race([finished, stopped]);
}
