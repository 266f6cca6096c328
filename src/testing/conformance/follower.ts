/** Reads an observation to its end and keeps what it was told, in order. */
import type { Leader } from "../../seam/backend.js";
import { ConformanceFailure, show } from "./check.js";

type Soon = <T>(promise: Promise<T>, what: string) => Promise<T>;

export class Follower {
  /** All that was seen, oldest first. */
  readonly seen: (Leader | null)[] = [];
  /** Settles when the observation has ended, with what it threw if it threw. */
  readonly ended: Promise<unknown>;
  readonly #soon: Soon;
  #news: (() => void)[] = [];
  #over = false;

  constructor(observation: AsyncIterable<Leader | null>, soon: Soon) {
    this.#soon = soon;
    this.ended = this.#read(observation);
  }

  /** Waits until something like this has been seen, after the first `from` sights. */
  async sees(wanted: (leader: Leader | null) => boolean, what: string, from = 0): Promise<void> {
    const found = async (): Promise<void> => {
      while (!this.seen.slice(from).some(wanted)) {
        if (this.#over) throw new ConformanceFailure(`${what}: the observation ended before`);
        await new Promise<void>((resolve) => this.#news.push(resolve));
      }
    };
    try {
      await this.#soon(found(), what);
    } catch (error) {
      const detail = error instanceof Error ? error.message : String(error);
      throw new ConformanceFailure(`${detail}; seen so far: ${show(this.seen)}`);
    }
  }

  async #read(observation: AsyncIterable<Leader | null>): Promise<unknown> {
    try {
      for await (const leader of observation) {
        this.seen.push(leader);
        this.#tell();
      }
      return undefined;
    } catch (error) {
      return error;
    } finally {
      this.#over = true;
      this.#tell();
    }
  }

  #tell(): void {
    const waiting = this.#news;
    this.#news = [];
    for (const resolve of waiting) resolve();
  }
}
