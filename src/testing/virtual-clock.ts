/**
 * Time for tests of your own leader code: it stands still until you move it.
 *
 * ```ts
 * const clock = new VirtualClock();
 * const backend = memoryBackend({ clock });
 * const election = new Election({ name: "jobs", backend, clock });
 * const running = election.run(work, { signal });
 * await clock.advance(60_000); // a minute of leadership, renewals and all, in a few milliseconds
 * ```
 *
 * Only what was handed this clock runs on it: work that sleeps with `setTimeout`
 * sleeps for real.
 */
import type { Clock, Timer } from "../seam/clock.js";
import { Random } from "./sim/random.js";

/** Where a {@link VirtualClock} starts. */
export interface VirtualClockOptions {
  /** Epoch milliseconds at the start. Default: the beginning of 2025. */
  readonly wallMs?: number;
  /** Chance, repeatable: clocks with the same seed draw the same numbers. Default 1. */
  readonly seed?: number;
}

interface Pending {
  readonly dueAt: number;
  readonly fire: () => void;
}

/** A clock that moves only when it is told to. */
export class VirtualClock implements Clock {
  readonly #random: Random;
  readonly #pending = new Set<Pending>();
  #now = 0;
  #slept = 0;
  #wallAhead: number;

  constructor(options: VirtualClockOptions = {}) {
    this.#wallAhead = options.wallMs ?? Date.UTC(2025, 0, 1);
    this.#random = new Random(options.seed ?? 1, "virtual clock");
  }

  now(): number {
    return this.#now;
  }

  wall(): number {
    return this.boot() + this.#wallAhead;
  }

  boot(): number {
    return this.#now + this.#slept;
  }

  after(delayMs: number, callback: () => void): Timer {
    const pending = { dueAt: this.#now + Math.max(0, delayMs), fire: callback };
    this.#pending.add(pending);
    return { cancel: () => void this.#pending.delete(pending) };
  }

  random(): number {
    return this.#random.next();
  }

  uniqueId(): string {
    return this.#random.hex(16);
  }

  /** Timers that are set. Zero after everything was closed, or something was left behind. */
  get timers(): number {
    return this.#pending.size;
  }

  /** Moves time on: timers fire in order, and what they set off settles before the next one does. */
  async advance(ms: number): Promise<void> {
    if (!Number.isFinite(ms) || ms < 0)
      throw new RangeError(`time moves forward by a finite number, not by ${ms}`);
    const until = this.#now + ms;
    await settled();
    for (let next = this.#next(until); next !== undefined; next = this.#next(until)) {
      this.#pending.delete(next);
      this.#now = Math.max(this.#now, next.dueAt);
      next.fire();
      await settled();
    }
    this.#now = until;
  }

  /** A process that is stopped, or an event loop that is blocked: time passes, and no timer has fired yet. */
  stall(ms: number): void {
    this.#now += ms;
  }

  /** The machine sleeps: monotonic time stands still, the other clocks go on. */
  suspend(ms: number): void {
    this.#slept += ms;
  }

  /** Someone sets the date. */
  jumpWall(ms: number): void {
    this.#wallAhead += ms;
  }

  #next(until: number): Pending | undefined {
    let first: Pending | undefined;
    for (const pending of this.#pending) {
      if (pending.dueAt > until) continue;
      if (first === undefined || pending.dueAt < first.dueAt) first = pending;
    }
    return first;
  }
}

/** Runs after every promise that can settle has settled. */
function settled(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
