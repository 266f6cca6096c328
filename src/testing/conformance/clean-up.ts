/**
 * Cleaning up after a test: every step is tried, each has a bound, and one that
 * fails or does not end is named. A driver whose pool never ends must not be a
 * test run that hangs without a word.
 */
import { describe } from "../../kit/errors.js";

export class CleanUp {
  readonly problems: string[] = [];
  readonly #longestMs: number;

  constructor(longestMs: number) {
    this.#longestMs = longestMs;
  }

  async step(what: string, run: () => PromiseLike<unknown> | void): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<never>((_, reject) => {
      const message = `it did not end within ${this.#longestMs / 1000} s`;
      timer = setTimeout(() => reject(new Error(message)), this.#longestMs);
    });
    try {
      await Promise.race([(async () => run())(), late]);
    } catch (error) {
      this.problems.push(`${what} after the test: ${describe(error)}`);
    } finally {
      clearTimeout(timer);
    }
  }

  /** The same for many at once. */
  async all<T>(what: string, items: readonly T[], end: (item: T) => PromiseLike<unknown>): Promise<void> {
    await Promise.all(items.map((item) => this.step(what, () => end(item))));
  }
}
