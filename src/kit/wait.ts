/**
 * Waiting, bounded and abortable. `AbortSignal.any` and `AbortSignal.timeout`
 * are not used anywhere: on Node 20 their combination is lost to the garbage
 * collector, and with a long-lived parent it leaks. Links are made and unmade
 * by hand.
 */
import { setMaxListeners } from "node:events";
import type { Clock } from "../seam/clock.js";
import { ConclaveError } from "./errors.js";
import { StopSource } from "./stop.js";
import type { Stop } from "./stop.js";

/**
 * A controller for a signal that many may wait for at once. Node takes more than
 * ten listeners for a leak and warns on stderr; here each is unlinked by hand.
 */
export function sharedController(): AbortController {
  const controller = new AbortController();
  // A program may bring signals of its own (simulators, jsdom): those are not Node's to count.
  if (controller.signal instanceof EventTarget) setMaxListeners(0, controller.signal);
  return controller;
}

/** Calls `listener` when the signal aborts, at once if it has. Returns the unlink. */
export function onAbort(signal: Stop, listener: () => void): () => void {
  if (signal.aborted) {
    listener();
    return () => {};
  }
  signal.addEventListener("abort", listener, { once: true });
  return () => signal.removeEventListener("abort", listener);
}

/** A signal that follows others, and the way to let go of them. */
export interface LinkedSignal {
  readonly signal: AbortSignal;
  readonly unlink: () => void;
}

/** A signal that aborts with the first of these. Linked by hand: unlink it when done. */
export function linkedSignal(sources: readonly Stop[]): LinkedSignal {
  const controller = new AbortController();
  const unlinks = sources.map((source) => onAbort(source, () => controller.abort(source.reason)));
  return { signal: controller.signal, unlink: () => unlinks.forEach((unlink) => unlink()) };
}

/** What `AbortSignal.throwIfAborted` does, for any stop. */
export function throwIfStopped(stop: Stop): void {
  if (stop.aborted) throw stop.reason;
}

/** Sleeps. Resolves early, without a throw, when the signal aborts. */
export function sleep(clock: Clock, delayMs: number, signal: Stop): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      timer?.cancel();
      unlink();
      resolve();
    };
    let timer: ReturnType<Clock["after"]> | undefined;
    let unlink = (): void => {};
    if (signal.aborted) return resolve();
    timer = clock.after(delayMs, done);
    unlink = onAbort(signal, done);
  });
}

/** Whether `promise` fulfils within this time, and before the stop. It must not reject. */
export async function settlesWithin(
  clock: Clock,
  limitMs: number,
  stop: Stop,
  promise: Promise<unknown>,
): Promise<boolean> {
  const waiting = new StopSource();
  const unlink = onAbort(stop, () => waiting.stop());
  const timeout = sleep(clock, limitMs, waiting).then(() => false);
  const settled = await Promise.race([promise.then(() => true), timeout]);
  unlink();
  waiting.stop();
  return settled;
}

const LATE_MS = 50;
const GRACE_MS = 10;

/**
 * Runs `call` with a signal that aborts after `limitMs` or with `signal`, and
 * stops waiting at that moment whether or not `call` honours it: a store client
 * that hangs must not take the caller with it. What `call` does later is lost.
 */
export function bounded<T>(
  clock: Clock,
  limitMs: number,
  signal: Stop,
  what: string,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  return limited(clock, limitMs, signal, what, (stop) => call(stop.signal));
}

/** {@link bounded} for a call that needs no AbortSignal: making one takes as long as half a request. */
export function limited<T>(
  clock: Clock,
  limitMs: number,
  signal: Stop,
  what: string,
  call: (stop: StopSource) => Promise<T>,
): Promise<T> {
  return new Promise((resolve, reject) => {
    throwIfStopped(signal);
    const source = new StopSource();
    const unarm = (): void => {
      timer.cancel();
      unlink();
    };
    const fail = (reason: unknown): void => {
      unarm();
      reject(reason);
    };
    const stop = (reason: unknown): void => {
      source.stop(reason);
      fail(reason); // the result of the call, if it comes later, is ignored
    };
    const expire = (): void =>
      stop(
        new ConclaveError(
          "timeout",
          `${what} was not answered within ${Math.round(limitMs)} ms; whether it took effect is unknown`,
        ),
      );
    const dueAt = clock.now() + limitMs;
    let timer = clock.after(limitMs, () => {
      // A late timer means that this process was paused: timers run before sockets are read, so the answer may be waiting there.
      if (clock.now() - dueAt < LATE_MS) expire();
      else timer = clock.after(GRACE_MS, expire);
    });
    const unlink = onAbort(signal, () => stop(signal.reason));
    try {
      call(source).then((value) => {
        unarm();
        resolve(value);
      }, fail);
    } catch (error) {
      fail(error);
    }
  });
}

/** Waits for `promise`, but not beyond the abort of `signal`. What comes after that is lost. */
export async function untilAborted<T>(signal: Stop, promise: Promise<T>): Promise<T> {
  let unlink = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    unlink = onAbort(signal, () => {
      promise.catch(() => {});
      reject(signal.reason);
    });
  });
  aborted.catch(() => {});
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    unlink();
  }
}

/** A promise and its handles (`Promise.withResolvers` is not on Node 20). */
export interface Deferred<T> {
  readonly promise: Promise<T>;
  resolve(value: T): void;
}

export function deferred<T>(): Deferred<T> {
  let resolve!: (value: T) => void;
  const promise = new Promise<T>((r) => {
    resolve = r;
  });
  return { promise, resolve };
}
