/**
 * The time, by the holder's own clock, after which it must not act. It is counted from the
 * question, ends a margin early, and is computed from the clocks at every call: a
 * flag set by a timer is wrong after a SIGSTOP or a blocked loop.
 */
import type { Clock, Reading } from "../seam/clock.js";

/** Boot time is read in steps of 10 ms; a smaller difference means nothing. */
const COARSEST_STEP_MS = 25;

export class Deadline {
  readonly #clock: Clock;
  readonly marginMs: number;
  /** How far the clocks may drift apart before we ask which of them is right. */
  readonly #toleranceMs: number;
  #at = -Infinity;
  /** The clocks when the question was asked that the deadline counts from: suspended time since then counts. */
  #asked: Reading;

  /** `asked`: the clocks just before the request was sent that was granted. */
  constructor(clock: Clock, marginMs: number, asked: Reading, ttlMs: number) {
    this.#clock = clock;
    this.marginMs = marginMs;
    this.#toleranceMs = Math.max(marginMs / 4, COARSEST_STEP_MS);
    this.#asked = asked;
    this.extend(asked, ttlMs);
  }

  /** Monotonic time of the request that it counts from. */
  get askedAt(): number {
    return this.#asked.now;
  }

  /** The same deadline; what moves this one does not move the copy. */
  copy(): Deadline {
    const copy = new Deadline(this.#clock, this.marginMs, this.#asked, 0);
    copy.#at = this.#at;
    return copy;
  }

  /** Milliseconds left; zero or less when it has passed. Costs two clock reads. */
  remainingMs(): number {
    const now = this.#clock.now();
    if (this.#suspended(now)) this.#at = -Infinity;
    return this.#at - now;
  }

  /**
   * Moves the deadline, never back. Instant and clocks are of one question: the
   * clocks of a later one would hide a sleep between the two.
   */
  extend(asked: Reading, ttlMs: number): void {
    const at = asked.now + ttlMs - this.marginMs;
    if (at <= this.#at) return;
    this.#at = at;
    this.#asked = asked;
  }

  /**
   * Linux stops the monotonic clock while the machine sleeps. If the wall clock
   * went its own way since the question, boot time, which counts sleep, tells a
   * sleep (the term is over) from a clock that was set (nothing happened).
   */
  #suspended(now: number): boolean {
    const elapsed = now - this.#asked.now;
    const wall = this.#clock.wall();
    if (Math.abs(wall - this.#asked.wall - elapsed) <= this.#toleranceMs) return false;
    if (this.#clock.boot() - this.#asked.boot - elapsed > this.#toleranceMs) return true;
    this.#asked = { ...this.#asked, wall: wall - elapsed };
    return false;
  }
}
