/** Lets a number of calls in at once, the others in turn. */
import { onAbort } from "../../../core/waiting.js";

/** One that waits; whoever gave up stays in the line and is passed over. */
interface Waiting {
  admit: (() => void) | undefined;
}

export class Gate {
  #free: number;
  #line: Waiting[] = [];
  #head = 0;

  constructor(width: number) {
    this.#free = width;
  }

  /** Resolves with the way out, to be called once. Rejects when the signal aborts. */
  async enter(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#free > 0) this.#free--;
    else await this.#turn(signal);
    let left = false;
    return () => {
      if (left) return;
      left = true;
      this.#next();
    };
  }

  #next(): void {
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

  #turn(signal: AbortSignal): Promise<void> {
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
