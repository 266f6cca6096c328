/** Limits the number of calls under way at once; the others wait in order. */
import type { Stop } from "../../../kit/stop.js";
import { onAbort, throwIfStopped } from "../../../kit/wait.js";

/** A waiting call. One that was cancelled stays in the queue and is skipped. */
interface Waiting {
  admit: (() => void) | undefined;
}

/** A counting semaphore. */
export class CallSlots {
  #free: number;
  #queue: Waiting[] = [];
  #head = 0;

  constructor(width: number) {
    this.#free = width;
  }

  /** In at once, or not at all. Whoever is in must {@link leave}. */
  tryEnter(): boolean {
    if (this.#free === 0) return false;
    this.#free--;
    return true;
  }

  /** In, sooner or later. Rejects when the signal aborts: then there is nothing to leave. */
  async enter(signal: Stop): Promise<void> {
    throwIfStopped(signal);
    if (!this.tryEnter()) await this.#turn(signal);
  }

  leave(): void {
    while (this.#head < this.#queue.length) {
      const admit = this.#queue[this.#head++]?.admit;
      // Thousands may wait: the queue is cut now and then, not shifted each time.
      if (2 * this.#head > this.#queue.length) {
        this.#queue = this.#queue.slice(this.#head);
        this.#head = 0;
      }
      if (admit !== undefined) return admit();
    }
    this.#free++;
  }

  #turn(signal: Stop): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        admit: () => {
          waiting.admit = undefined;
          unlink();
          resolve();
        },
      };
      this.#queue.push(waiting);
      const unlink = onAbort(signal, () => {
        waiting.admit = undefined;
        reject(signal.reason);
      });
    });
  }
}
