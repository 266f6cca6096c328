/**
 * Holds on a lease that nobody follows: whoever has one renews it by itself, or
 * its key is removed one ttl after the question it was last extended by. The
 * terms of an election follow their lease, and are not watched here.
 */
import type { Clock, Timer } from "../../seam/clock.js";
import type { Seat } from "./seat.js";

export interface UnfollowedOptions {
  readonly clock: Clock;
  readonly ttlMs: number;
  /** All seats on the lease. */
  seats(): Iterable<Seat>;
  /** Nobody can lead by this one any more. */
  expired(seat: Seat): void;
}

export class Unfollowed {
  readonly #options: UnfollowedOptions;
  #timer: Timer | undefined;

  constructor(options: UnfollowedOptions) {
    this.#options = options;
  }

  /** One timer for all: the first that runs out, then the next. */
  watch(): void {
    if (this.#timer !== undefined) return;
    const { clock, ttlMs, seats, expired } = this.#options;
    let next = Infinity;
    for (const seat of [...seats()]) {
      if (seat.state !== "held") continue;
      const endsAt = seat.handedOut + ttlMs;
      if (endsAt <= clock.now()) expired(seat);
      else next = Math.min(next, endsAt);
    }
    if (next === Infinity) return;
    this.#timer = clock.after(next - clock.now(), () => {
      this.#timer = undefined;
      this.watch();
    });
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}
