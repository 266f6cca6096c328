/** A voter without a journal waits for all others. Who has not answered, and what is said of it: once, not at every attempt. */
import { describe } from "../../kit/errors.js";
import type { Clock } from "../../seam/clock.js";
import type { Told } from "./join.js";

/** Voters that are started together miss each other for a moment; whoever is silent for longer is missed. */
const TOGETHER_MS = 1_000;
const WHY = "At the first start, and after a lost disk, all other voters must answer once";

export interface WaitingParts {
  readonly self: string;
  readonly others: readonly string[];
  readonly clock: Clock;
  readonly log: (line: string) => void;
}

export class Waiting {
  readonly #parts: WaitingParts;
  readonly #ask: (name: string) => Promise<Told>;
  readonly #since: number;
  readonly #answered = new Set<string>();
  readonly #said = new Set<string>();

  constructor(parts: WaitingParts, ask: (name: string) => Promise<Told>) {
    this.#parts = parts;
    this.#ask = ask;
    this.#since = parts.clock.now();
  }

  /** Rejects as soon as one of them does. */
  askAll(): Promise<Told[]> {
    return Promise.all(
      this.#parts.others.map(async (name) => {
        try {
          const told = await this.#ask(name);
          this.#answered.add(name);
          return told;
        } catch (error) {
          this.#answered.delete(name);
          throw error;
        }
      }),
    );
  }

  /** Why it waits, in short; said on the log if it is news. */
  because(error: unknown): string {
    const { self, others, clock, log } = this.#parts;
    const silent = others.filter((name) => !this.#answered.has(name));
    const state = `this voter has no journal and waits for ${silent.length === 0 ? "all other voters" : silent.join(", ")}`;
    const why = `${state}: ${describe(error)}`;
    if (clock.now() - this.#since < TOGETHER_MS || this.#said.has(state)) return why;
    this.#said.add(state);
    log(`voter "${self}": ${why}. ${WHY}`);
    return why;
  }
}
