/**
 * The newest transaction that any server has told us of. A server that is behind
 * it refuses us, so that nothing we read goes back. If all of them refuse for
 * long it is held back: either they were down, or the ensemble was wiped or
 * restored, and then their next answer shows it.
 */
import type { Clock } from "../../../seam/clock.js";

export class SeenZxid {
  readonly #clock: Clock;
  #zxid = 0n;
  /** What was known before it was held back. */
  #before = 0n;
  #history = {};
  #refusals = 0;
  #refusedSince = Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get zxid(): bigint {
    return this.#zxid;
  }

  /** Another object after the ensemble has certainly lost its memory. */
  get history(): object {
    return this.#history;
  }

  saw(zxid: bigint): void {
    // Servers that were only down come back with all that was ever acknowledged.
    if (zxid < this.#before) this.#history = {};
    this.#before = 0n;
    if (zxid > this.#zxid) this.#zxid = zxid;
  }

  accepted(): void {
    this.#refusals = 0;
    this.#refusedSince = Infinity;
  }

  /** One server refused; there are `hosts` of them. */
  refused(hosts: number, patienceMs: number): void {
    this.#refusals++;
    this.#refusedSince = Math.min(this.#refusedSince, this.#clock.now());
    if (this.#refusals < 2 * hosts || this.#clock.now() - this.#refusedSince < patienceMs) return;
    if (this.#zxid > this.#before) this.#before = this.#zxid;
    this.#zxid = 0n;
    this.accepted();
  }
}
