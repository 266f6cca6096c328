/**
 * Waits until the record may have changed: for the store's watch, a timer or the
 * caller's signal. The watch is a hint and may end early; it is started again at
 * the next wait.
 */
import type { Entry, RecordStore } from "../seam/table.js";
import type { Clock } from "../seam/clock.js";
import { onAbort } from "../kit/wait.js";
import type { LeaseRecord } from "./lease.js";

/** A watch that ends as soon as it starts must not become a busy loop. */
const REARM_MS = 1000;

export type Woken = "watch" | "timer" | "aborted";

export class WatchOrTimer {
  readonly #clock: Clock;
  readonly #watch:
    | ((wake: (entry?: Entry<LeaseRecord>) => void, signal: AbortSignal) => Promise<void>)
    | undefined;
  readonly #closed = new AbortController();
  #watching = false;
  #armedAt = -Infinity;
  /** A wake that came while nobody was waiting counts for the next wait. */
  #pending = false;
  /** What the last wake brought, if it brought something. */
  #pushed: Entry<LeaseRecord> | undefined;
  #wake: (() => void) | undefined;

  constructor(clock: Clock, store: Pick<RecordStore<LeaseRecord>, "watch">, key: string) {
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

  /** The version that the last wake brought, once. A hint: it decides nothing but on which version a write is tried. */
  takePushed(): Entry<LeaseRecord> | undefined {
    const pushed = this.#pushed;
    this.#pushed = undefined;
    return pushed;
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
    const wake = (entry?: Entry<LeaseRecord>): void => {
      this.#pending = true;
      this.#pushed = entry;
      this.#wake?.();
    };
    const ended = (): void => {
      this.#watching = false;
    };
    // A watch that throws costs latency, never safety: the timer is underneath.
    void this.#watch(wake, this.#closed.signal).then(ended, ended);
  }
}
