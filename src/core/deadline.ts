/**
 * The holder's own instant after which it must not act. It is counted from the
 * question (`askedAt`), ends a margin early, and is computed from the clocks at
 * every call: a flag set by a timer is wrong after a SIGSTOP or a blocked loop.
 */
import type { Clock } from "./clock.js";

/** All clocks read at one instant. */
export interface Reading {
  readonly now: number;
  readonly wall: number;
  readonly boot: number;
}

export function readClocks(clock: Clock): Reading {
  return { now: clock.now(), wall: clock.wall(), boot: clock.boot() };
}

/** Boot time is read in steps of 10 ms; a smaller difference means nothing. */
const COARSEST_STEP_MS = 25;

export class Deadline {
  readonly #clock: Clock;
  readonly #marginMs: number;
  /** How far the clocks may drift apart before we ask which of them is right. */
  readonly #toleranceMs: number;
  #at: number;
  /** Clocks at some instant not later than the question: suspended time since then counts. */
  #base: Reading;

  constructor(clock: Clock, marginMs: number, base: Reading) {
    this.#clock = clock;
    this.#marginMs = marginMs;
    this.#toleranceMs = Math.max(marginMs / 4, COARSEST_STEP_MS);
    this.#at = -Infinity;
    this.#base = base;
  }

  /** Milliseconds left; zero or less when it has passed. Costs two clock reads. */
  remainingMs(): number {
    const now = this.#clock.now();
    if (this.#suspended(now)) this.#at = -Infinity;
    return this.#at - now;
  }

  /**
   * Moves the deadline: `askedAt` is when the request was sent, `base` the
   * clocks read before that. Never moves it back.
   */
  extend(askedAt: number, ttlMs: number, base: Reading): void {
    this.#at = Math.max(this.#at, askedAt + ttlMs - this.#marginMs);
    // A lease shared by many may have been extended before `base` was read: then the older reading stays.
    if (base.now <= askedAt) this.#base = base;
  }

  /**
   * Linux stops the monotonic clock while the machine sleeps. If the wall clock
   * went its own way since the question, boot time, which counts sleep, tells a
   * sleep (the term is over) from a clock that was set (nothing happened).
   */
  #suspended(now: number): boolean {
    const elapsed = now - this.#base.now;
    const wall = this.#clock.wall();
    if (Math.abs(wall - this.#base.wall - elapsed) <= this.#toleranceMs) return false;
    if (this.#clock.boot() - this.#base.boot - elapsed > this.#toleranceMs) return true;
    this.#base = { ...this.#base, wall: wall - elapsed };
    return false;
  }
}
