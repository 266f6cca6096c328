/** Lets a number of calls in at once, the others in turn. */
import type { Stop } from "../../../kit/stop.js";
import { onAbort, throwIfStopped } from "../../../kit/wait.js";

/** One that waits; whoever gave up stays in the line and is passed over. */
interface Waiting {
  admit: (() => void) | undefined;
}

/** A fence in memory that also waits for acts of earlier leaders to end. */
export class Gate {
  #free: number;
  #line: Waiting[] = [];
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
    while (this.#head < this.#line.length) {
      const admit = this.#line[this.#head++]?.admit;
      // Thousands may stand in line: it is cut once in a while, not moved up each time.
      if (2 * this.#head > this.#line.length) {
        this.#line = this.#line.slice(this.#head);
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
      this.#line.push(waiting);
      const unlink = onAbort(signal, () => {
        waiting.admit = undefined;
        reject(signal.reason);
      });
    });
  }
}
