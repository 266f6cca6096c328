/** Lets a number of calls in at once, the others in turn. */
import { onAbort } from "../../../core/waiting.js";

export class Gate {
  #free: number;
  readonly #queue = new Set<() => void>();

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
      const [next] = this.#queue;
      if (next === undefined) this.#free++;
      else next();
    };
  }

  #turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const admit = (): void => {
        this.#queue.delete(admit);
        unlink();
        resolve();
      };
      this.#queue.add(admit);
      const unlink = onAbort(signal, () => {
        this.#queue.delete(admit);
        reject(signal.reason);
      });
    });
  }
}
