/** Faults that lie in wait for whoever does a certain thing next. */
import type { Replica } from "./replica.js";

/** `next`: the next leader. A node is elected, tries to be elected, claims a scheduled time, or begins a job. */
export type Moment = "next" | "campaigning" | "claim" | "run";

type Strike = (replica: Replica) => void;

export class Ambushes {
  readonly #strikes: Record<Moment, Strike[]> = { next: [], campaigning: [], claim: [], run: [] };

  add(moment: Moment, strike: Strike): void {
    this.#strikes[moment].push(strike);
  }

  /** The fault that waited longest for this. */
  take(moment: Moment): Strike | undefined {
    return this.#strikes[moment].shift();
  }
}
