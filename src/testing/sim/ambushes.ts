/** Faults that lie in wait for whoever does a certain thing next. */
import type { Replica } from "./replica.js";
import type { InHandover } from "./succession-plan.js";

/** `next`: the next leader. A node is elected, tries to be elected, claims a scheduled time, or begins a job; or a leader hands over. */
export type Moment = "next" | "campaigning" | "claim" | "run" | InHandover;

type Strike = (replica: Replica) => void;

export class Ambushes {
  readonly #strikes = new Map<Moment, Strike[]>();

  add(moment: Moment, strike: Strike): void {
    this.#strikes.set(moment, [...(this.#strikes.get(moment) ?? []), strike]);
  }

  /** The fault that waited longest for this. */
  take(moment: Moment): Strike | undefined {
    return this.#strikes.get(moment)?.shift();
  }
}

const MOMENTS: readonly string[] = [
  "next",
  "campaigning",
  "claim",
  "run",
  "handing",
  "heir",
  "waiting",
] satisfies Moment[];

/** Whether a fault's target is such a moment. */
export function isMoment(target: string): target is Moment {
  return MOMENTS.includes(target);
}
