/** How long to wait before asking again: longer with every failure, never in step with others. */
import type { Clock } from "../seam/clock.js";

export class Backoff {
  readonly #clock: Clock;
  readonly #firstMs: number;
  readonly #longestMs: number;
  #failures = 0;

  constructor(clock: Clock, firstMs: number, longestMs: number) {
    this.#clock = clock;
    this.#firstMs = firstMs;
    this.#longestMs = longestMs;
  }

  /** What failed will fail again unless someone acts: go straight to the longest wait. */
  permanent(): number {
    return this.#jittered(this.#longestMs);
  }

  next(): number {
    const delay = Math.min(this.#longestMs, this.#firstMs * 2 ** Math.min(this.#failures, 20));
    this.#failures++;
    return this.#jittered(delay);
  }

  reset(): void {
    this.#failures = 0;
  }

  #jittered(delayMs: number): number {
    return delayMs * (0.5 + 0.5 * this.#clock.random());
  }
}
