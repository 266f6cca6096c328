/** Looks at every candidate's `held` at the same instant, many times a second. */
import type { Election } from "../../../src/election/election.js";

export interface OverlapReport {
  readonly samples: number;
  /** Longest stretch in which two said yes, in milliseconds; 0 = never seen. */
  readonly longestMs: number;
}

export class OverlapWatch {
  readonly #elections: readonly Election[];
  readonly #timer: NodeJS.Timeout;
  #samples = 0;
  #since: number | undefined;
  #longest = 0;

  constructor(elections: readonly Election[]) {
    this.#elections = elections;
    this.#timer = setInterval(() => this.#look(), 2);
  }

  stop(): OverlapReport {
    clearInterval(this.#timer);
    this.#look();
    return { samples: this.#samples, longestMs: this.#longest };
  }

  #look(): void {
    this.#samples++;
    const now = performance.now();
    if (this.#elections.filter((election) => election.leading).length < 2) {
      this.#since = undefined;
      return;
    }
    this.#since ??= now;
    this.#longest = Math.max(this.#longest, now - this.#since, 1);
  }
}

/** Waits until one of them leads, and says which. */
export async function leaderOf(
  elections: readonly Election[],
  limitMs: number,
  not?: Election,
): Promise<Election> {
  const until = performance.now() + limitMs;
  while (performance.now() < until) {
    const leader = elections.find((election) => election !== not && election.leading);
    if (leader) return leader;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  throw new Error(`nobody leads after ${limitMs} ms`);
}

/** Work that lasts until it is told to stop. */
export function untilStopped(term: { readonly signal: AbortSignal }): Promise<void> {
  return new Promise((resolve) => {
    if (term.signal.aborted) return resolve();
    term.signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
