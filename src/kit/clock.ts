/**
 * The only file that touches time and chance. Everything else is handed a
 * {@link Clock}, so that the simulator can run the very same code on virtual
 * time, and so that no lease is ever measured by a clock that jumps.
 */
import { randomFillSync } from "node:crypto";
import { uptime } from "node:os";
import type { Clock, Reading, Timer } from "../seam/clock.js";

/** Reads all clocks at one moment. */
export function readClocks(clock: Clock): Reading {
  return { now: clock.now(), wall: clock.wall(), boot: clock.boot() };
}

/** Random bytes are fetched for so many ids at once: a fetch takes far longer than the bytes. */
const IDS_AT_ONCE = 256;
const ID_BYTES = 8;

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
  readonly #random = Buffer.alloc(IDS_AT_ONCE * ID_BYTES);
  #used = this.#random.length;

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
    if (this.#used === this.#random.length) {
      randomFillSync(this.#random);
      this.#used = 0;
    }
    const from = this.#used;
    this.#used += ID_BYTES;
    return this.#random.toString("hex", from, this.#used);
  }
}

/** The machine's own clocks. */
export const systemClock: Clock = new SystemClock();
