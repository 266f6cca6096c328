/**
 * The holder's deadline, carried from one process to another. Milliseconds of
 * `Clock.now()` mean something within one process only; CLOCK_MONOTONIC in
 * nanoseconds is the same for all of a machine (of one time namespace).
 */
import { systemClock } from "../kit/clock.js";
import { type Reading } from "../seam/clock.js";
import { Deadline } from "../law/deadline.js";
import type { Term } from "../api/term.js";
import type { KillDeadline } from "./wire.js";

/** What is certainly ours, less `reserveMs`. The clocks are read before the term is asked: rather too short. */
export function killDeadlineOf(term: Pick<Term, "remainingMs">, reserveMs: number): KillDeadline {
  const at = process.hrtime.bigint();
  const wall = systemClock.wall();
  const boot = systemClock.boot();
  const leftMs = Math.floor(term.remainingMs - reserveMs);
  return { until: (at + BigInt(leftMs) * 1_000_000n).toString(), at: at.toString(), wall, boot };
}

/** The same deadline in the receiving process. */
export class ReceivedDeadline {
  readonly #deadline: Deadline;
  readonly #marginMs: number;

  constructor(deadline: KillDeadline, marginMs: number) {
    this.#marginMs = marginMs;
    this.#deadline = new Deadline(systemClock, marginMs, clocksOf(deadline), this.#ttlOf(deadline));
  }

  /** Never moves it back. */
  extend(deadline: KillDeadline): void {
    this.#deadline.extend(clocksOf(deadline), this.#ttlOf(deadline));
  }

  /** `Deadline` takes a margin off; this instant has been cut already. */
  #ttlOf({ at, until }: KillDeadline): number {
    return Number(BigInt(until) - BigInt(at)) / 1e6 + this.#marginMs;
  }

  /** Zero or less when it has passed, or when the machine has slept since it was sent. */
  remainingMs(): number {
    return this.#deadline.remainingMs();
  }
}

function clocksOf({ at, wall, boot }: KillDeadline): Reading {
  return { now: localMs(at), wall, boot };
}

/** Nanoseconds of CLOCK_MONOTONIC in milliseconds of this process's clock. Rather too early. */
function localMs(nanoseconds: string): number {
  const now = systemClock.now();
  return now + Number(BigInt(nanoseconds) - process.hrtime.bigint()) / 1e6;
}
