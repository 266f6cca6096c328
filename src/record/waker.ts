/**
 * Sleeping until something may have changed: the store's watch wakes, a timer
 * wakes, the caller's signal wakes. The watch is a hint, so it may end early; it
 * is armed again at the next wait.
 */
import type { RecordStore } from "../seam/table.js";
import type { Clock } from "../seam/clock.js";
import { onAbort } from "../kit/wait.js";

/** A watch that ends as soon as it is armed must not become a hot loop. */
const REARM_MS = 1000;

export type Woken = "watch" | "timer" | "aborted";

export class Waker {
  readonly #clock: Clock;
  readonly #watch: ((wake: () => void, signal: AbortSignal) => Promise<void>) | undefined;
  readonly #closed = new AbortController();
  #watching = false;
  #armedAt = -Infinity;
  /** A wake that came while nobody was waiting counts for the next wait. */
  #pending = false;
  #wake: (() => void) | undefined;

  constructor(clock: Clock, store: Pick<RecordStore, "watch">, key: string) {
    this.#clock = clock;
    // Async, so that a watch that throws at the call is one that fails, like any other.
    this.#watch = store.watch && (async (wake, signal) => store.watch!(key, wake, { signal }));
  }

  wait(delayMs: number, signal: AbortSignal): Promise<Woken> {
    this.#arm();
    return new Promise((resolve) => {
      if (signal.aborted) return resolve("aborted");
      if (this.#take()) return resolve("watch");
      const done = (woken: Woken): void => {
        timer.cancel();
        unlink();
        this.#wake = undefined;
        resolve(woken);
      };
      const timer = this.#clock.after(delayMs, () => done("timer"));
      const unlink = onAbort(signal, () => done("aborted"));
      this.#wake = () => {
        this.#pending = false;
        done("watch");
      };
    });
  }

  close(): void {
    this.#closed.abort();
  }

  #take(): boolean {
    const pending = this.#pending;
    this.#pending = false;
    return pending;
  }

  #arm(): void {
    if (this.#watching || this.#watch === undefined || this.#closed.signal.aborted) return;
    if (this.#clock.now() - this.#armedAt < REARM_MS) return;
    this.#armedAt = this.#clock.now();
    this.#watching = true;
    const wake = (): void => {
      this.#pending = true;
      this.#wake?.();
    };
    const ended = (): void => {
      this.#watching = false;
    };
    // A watch that throws costs latency, never safety: the timer is underneath.
    void this.#watch(wake, this.#closed.signal).then(ended, ended);
  }
}
