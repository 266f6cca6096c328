/**
 * The only file that touches time and chance. Everything else is handed a
 * {@link Clock}, so that the simulator can run the very same code on virtual
 * time, and so that no lease is ever measured by a clock that jumps.
 */
import { randomBytes } from "node:crypto";
import { uptime } from "node:os";
import type { Clock, Reading, Timer } from "../seam/clock.js";

/** Reads all clocks at one moment. */
export function readClocks(clock: Clock): Reading {
  return { now: clock.now(), wall: clock.wall(), boot: clock.boot() };
}

/** Node fires timers beyond this at once; longer waits are cut and re-armed by the callee. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

class SystemTimer implements Timer {
  readonly #handle: ReturnType<typeof setTimeout>;

  constructor(handle: ReturnType<typeof setTimeout>) {
    this.#handle = handle;
  }

  cancel(): void {
    clearTimeout(this.#handle);
  }
}

class SystemClock implements Clock {
  now(): number {
    return performance.now();
  }

  wall(): number {
    return Date.now();
  }

  boot(): number {
    return uptime() * 1000;
  }

  after(delayMs: number, callback: () => void): Timer {
    const handle = setTimeout(callback, Math.min(Math.max(0, delayMs), LONGEST_TIMER_MS));
    return new SystemTimer(handle);
  }

  random(): number {
    return Math.random();
  }

  uniqueId(): string {
    return randomBytes(8).toString("hex");
  }
}

/** The machine's own clocks. */
export const systemClock: Clock = new SystemClock();
