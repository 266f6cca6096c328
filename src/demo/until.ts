import { systemClock } from "../kit/clock.js";
import { onAbort } from "../kit/wait.js";

/** Calls back at every event. Returns the unlink. */
type Listen<E> = (listener: (event: E) => void) => () => void;

export interface Patience {
  /** What is waited for, in words. */
  readonly what: string;
  readonly limitMs: number;
  readonly signal: AbortSignal;
}

/** Waits until something holds; looks now and after every event. Rejects when that takes too long, or the signal aborts. */
export async function until<E, T>(
  on: Listen<E>,
  { what, limitMs, signal }: Patience,
  look: (event?: E) => T | undefined,
): Promise<T> {
  const now = look();
  if (now !== undefined) return now;
  return new Promise<T>((resolve, reject) => {
    const finish = (): void => {
      timer.cancel();
      off();
      unlink();
    };
    const timer = systemClock.after(limitMs, () => {
      finish();
      reject(new Error(`the demo waited ${Math.round(limitMs / 1000)} s in vain for this: ${what}`));
    });
    const off = on((event) => {
      const found = look(event);
      if (found === undefined) return;
      finish();
      resolve(found);
    });
    let unlink = (): void => {};
    unlink = onAbort(signal, () => {
      finish();
      reject(signal.reason as Error);
    });
  });
}
