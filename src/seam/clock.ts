/** Time and chance, as they are handed in. `systemClock` (kit/clock.ts) is the machine's; the simulator has another. */

/** A callback that has been asked for. */
export interface Timer {
  cancel(): void;
}

/** Time and chance, as the library sees them. */
export interface Clock {
  /** Monotonic milliseconds. Leases are measured by it, and only within one process. */
  now(): number;
  /** Epoch milliseconds of the wall clock. It jumps: for people, and to *suspect* a suspend. */
  wall(): number;
  /** Milliseconds since boot, suspended time included. Coarse. Decides what `wall` suspects. */
  boot(): number;
  /** Calls back once, perhaps early or late: the callee re-reads the clock. */
  after(delayMs: number, callback: () => void): Timer;
  /** Uniform in [0, 1). */
  random(): number;
  /** A hex string nobody else has. */
  uniqueId(): string;
}

/** All clocks, read at one moment. */
export interface Reading {
  readonly now: number;
  readonly wall: number;
  readonly boot: number;
}
