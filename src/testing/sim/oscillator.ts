import type { Random } from "./random.js";

/**
 * One machine's sense of time: three clocks driven by one oscillator that runs
 * a little fast or slow, and changes its mind.
 */
export class Oscillator {
  #since = 0;
  #mono: number;
  #boot: number;
  #wallAhead: number;
  #rate: number;
  #suspended = false;

  constructor(rate: number, start: { mono: number; boot: number; wall: number }) {
    this.#rate = rate;
    this.#mono = start.mono;
    this.#boot = start.boot;
    this.#wallAhead = start.wall - start.boot;
  }

  /** Stands still while the machine is suspended. */
  mono(time: number): number {
    return this.#suspended ? this.#mono : this.#mono + (time - this.#since) * this.#rate;
  }

  /** Goes on while the machine is suspended. */
  boot(time: number): number {
    return this.#boot + (time - this.#since) * this.#rate;
  }

  wall(time: number): number {
    return this.boot(time) + this.#wallAhead;
  }

  /** The true time at which `mono` will be reached, if nothing changes; never while suspended. */
  whenMono(mono: number): number {
    return this.#suspended ? Infinity : this.#since + (mono - this.#mono) / this.#rate;
  }

  setRate(time: number, rate: number): void {
    this.#settle(time);
    this.#rate = rate;
  }

  setSuspended(time: number, suspended: boolean): void {
    this.#settle(time);
    this.#suspended = suspended;
  }

  /** Someone set the date. */
  jumpWall(byMs: number): void {
    this.#wallAhead += byMs;
  }

  /** And someone set it right. */
  setWall(time: number, wall: number): void {
    this.#wallAhead = wall - this.boot(time);
  }

  #settle(time: number): void {
    const mono = this.mono(time);
    const boot = this.boot(time);
    this.#mono = mono;
    this.#boot = boot;
    this.#since = time;
  }
}

/** Mostly as slow or as fast as is permitted: what is safe there is safe between. */
export function drawRate(rates: { readonly low: number; readonly high: number }, random: Random): number {
  const roll = random.next();
  if (roll < 0.4) return rates.low;
  return roll > 0.6 ? rates.high : random.between(rates.low, rates.high);
}
