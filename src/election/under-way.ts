/** All that a candidate has under way: `close()` stops it, and waits for it. */
import { type Stop, StopSource } from "../kit/stop.js";
import { linkedSignal } from "../kit/wait.js";
import type { LinkedSignal } from "../kit/wait.js";

export class UnderWay {
  readonly #closing = new StopSource();
  #running: Set<Promise<unknown>> | undefined;

  get closed(): boolean {
    return this.#closing.aborted;
  }

  /** Stops with {@link stop}. */
  get closing(): Stop {
    return this.#closing;
  }

  /** A signal that aborts with the caller's or with {@link stop}; linked by hand, unlinked when done. */
  stopSignal(signal: Stop | undefined): LinkedSignal {
    return linkedSignal([this.#closing, ...(signal ? [signal] : [])]);
  }

  track<T>(promise: Promise<T>): Promise<T> {
    const running = (this.#running ??= new Set());
    const forget = (): void => {
      running.delete(tracked);
      if (running.size === 0 && this.#running === running) this.#running = undefined;
    };
    const tracked = promise.then(forget, forget);
    running.add(tracked);
    return promise;
  }

  stop(reason: unknown): void {
    this.#closing.stop(reason);
  }

  /** When all is done. What is stopped may leave something to be given back. */
  async settled(): Promise<void> {
    while (this.#running !== undefined) await Promise.allSettled([...this.#running]);
  }
}
