/**
 * Holds on a session that nobody follows: their owner renews them one by one, or
 * what was written for them is removed one ttl after the request that last
 * extended them. The terms of an election follow their session, and are not
 * watched here.
 */
import type { Clock, Timer } from "../seam/clock.js";

/** A candidate on the session, as far as this is concerned. */
export interface PossibleHold {
  /** `held`: handed out as a hold, and followed by nobody. */
  readonly state: string;
  /** When the request was sent that last extended the hold by itself. */
  readonly handedOut: number;
}

export interface UnfollowedHoldsOptions<H extends PossibleHold> {
  readonly clock: Clock;
  readonly ttlMs: number;
  /** When the request was sent that last extended the session. */
  extendedAt(): number;
  /** All candidates on the session. */
  candidates(): Iterable<H>;
  /** No term can be held on this one any more. */
  expired(candidate: H): void;
}

export class UnfollowedHolds<H extends PossibleHold> {
  readonly #options: UnfollowedHoldsOptions<H>;
  #timer: Timer | undefined;
  /** The same for all holds: what counted when somebody last followed. */
  #extendedAt = -Infinity;

  constructor(options: UnfollowedHoldsOptions<H>) {
    this.#options = options;
  }

  /**
   * Somebody who followed does so no more. A term may still be held, until the
   * extensions that it was told of are over: that its work does not stop is a
   * reason to leave the session, not to remove what keeps others away.
   */
  extended(): void {
    this.#extendedAt = this.#options.extendedAt();
  }

  /** One timer for all: the first that runs out, then the next. */
  watch(): void {
    if (this.#timer !== undefined) return;
    const { clock, ttlMs, candidates, expired } = this.#options;
    let next = Infinity;
    for (const candidate of [...candidates()]) {
      if (candidate.state !== "held") continue;
      const endsAt = Math.max(candidate.handedOut, this.#extendedAt) + ttlMs;
      if (endsAt <= clock.now()) expired(candidate);
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
