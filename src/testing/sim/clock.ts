/** The library's {@link Clock} on virtual time: one per election, so that what it leaves behind can be counted. */
import type { Clock, Timer } from "../../seam/clock.js";
import type { NodeTimer, SimProcess } from "./node.js";
import type { Random } from "./random.js";

/** `os.uptime()` counts in hundredths of a second. */
const BOOT_STEP_MS = 10;

export class SimClock implements Clock {
  /** Timers that were set and have neither fired nor been cancelled. */
  pending = 0;
  /** Set when its owner is closed: whoever sets a timer after that is reported. */
  retired: ((what: string) => void) | undefined;
  readonly #process: SimProcess;
  readonly #random: Random;

  constructor(process: SimProcess, purpose: string) {
    this.#process = process;
    this.#random = process.stream(purpose);
  }

  now(): number {
    const { oscillator, scheduler } = this.#process.node;
    return oscillator.mono(scheduler.now);
  }

  wall(): number {
    const { oscillator, scheduler } = this.#process.node;
    return Math.floor(oscillator.wall(scheduler.now));
  }

  boot(): number {
    const { oscillator, scheduler } = this.#process.node;
    return Math.floor(oscillator.boot(scheduler.now) / BOOT_STEP_MS) * BOOT_STEP_MS;
  }

  after(delayMs: number, callback: () => void): Timer {
    if (!this.#process.alive) return { cancel: () => {} };
    this.retired?.(`a timer of ${Math.round(delayMs)} ms was set`);
    let timer: NodeTimer | undefined = this.#process.setTimer(delayMs, () => {
      timer = undefined;
      this.pending--;
      callback();
    });
    this.pending++;
    return {
      cancel: () => {
        if (timer === undefined) return;
        this.#process.clearTimer(timer);
        timer = undefined;
        this.pending--;
      },
    };
  }

  random(): number {
    return this.#random.next();
  }

  uniqueId(): string {
    return this.#random.hex(16);
  }
}
