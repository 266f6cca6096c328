/**
 * For backends on drivers that know no AbortSignal: every call of the seam ends
 * soon after its signal aborts, whatever the driver does. Published in
 * `conclave/backend`.
 */
import type { Clock } from "../seam/clock.js";
import { systemClock } from "./clock.js";
import { bounded, onAbort, untilAborted } from "./wait.js";

/** What becomes of a driver's call that nobody waits for any more. */
export interface AbortableOptions<T> {
  /**
   * Called once if the signal aborts before the driver has answered. Cancel the
   * request here, or destroy its connection: a pool that waits for it to come
   * back would never close.
   */
  readonly cancel?: () => void;
  /** Called with an answer that came after the abort: a connection to be given back, for example. What it throws is lost. */
  readonly late?: (value: T) => void;
}

/**
 * Waits for a driver's promise until the signal aborts, then rejects with the
 * signal's reason. If the signal is aborted already, `call` is not made at all.
 * After an abort it is not known whether a write took effect, and the rejection
 * says just that.
 */
export async function abortable<T>(
  signal: AbortSignal,
  call: () => Promise<T>,
  options: AbortableOptions<T> = {},
): Promise<T> {
  signal.throwIfAborted();
  const running = call();
  const unlink = onAbort(signal, () => {
    if (options.late !== undefined) running.then(options.late).catch(() => {});
    options.cancel?.();
  });
  try {
    return await untilAborted(signal, running);
  } finally {
    unlink();
  }
}

/** How long a call may take, and for whom. */
export interface BoundedCall {
  /** The caller's own signal. */
  readonly signal: AbortSignal;
  readonly limitMs: number;
  /** For the error message: `reading the lease`. */
  readonly what: string;
  /** Default: the system's clock. */
  readonly clock?: Clock;
}

/**
 * Makes a call that ends when the caller's signal aborts or the limit is
 * reached, whichever is first; the signal handed to `call` aborts then. A limit
 * that was reached is a `ConclaveError` with the code `timeout`.
 */
export function boundedCall<T>(
  { signal, limitMs, what, clock = systemClock }: BoundedCall,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  return bounded(clock, limitMs, signal, what, call);
}
