/** Keeps the lease of the first store while the second one is waited for. */
import type { Clock } from "../seam/clock.js";
import type { Candidacy, Extension, Hold } from "../seam/backend.js";
import { RenewalLoop } from "../kit/renewal.js";
import { onAbort } from "../kit/wait.js";

/** As the library's default: a third of the lease between renewals, and its last part is not counted on. */
const RENEWALS = 3;
const MARGIN_SHARE = 0.15;

export class KeptHold {
  readonly hold: Hold;
  readonly #clock: Clock;
  readonly #renewals: RenewalLoop<Extension | "lost">;
  readonly #lost = new AbortController();
  #extension: Extension;

  constructor(clock: Clock, hold: Hold, { attemptMs }: Candidacy) {
    this.hold = hold;
    this.#clock = clock;
    this.#extension = { asked: hold.asked };
    this.#renewals = new RenewalLoop<Extension | "lost">({
      clock,
      renewMs: hold.ttlMs / RENEWALS,
      attemptMs,
      leftMs: () => this.#leftMs(),
      ask: (signal) => hold.renew({ signal }),
      answered: (answer) => {
        if (answer === "lost") this.#lost.abort();
        else this.#extension = answer;
        return answer === "lost" ? undefined : answer.asked.now;
      },
      // What cannot be renewed is given up before its end: campaigning goes on from the beginning.
      failed: () => {
        if (this.#leftMs() <= 0) this.#lost.abort();
        return !this.#lost.signal.aborted;
      },
    });
    this.#renewals.start(hold.asked.now);
  }

  /** The newest extension that the store has answered. */
  get extension(): Extension {
    return this.#extension;
  }

  /** Aborts when the lease is gone, or can no longer be counted on. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** Runs a call whose signal aborts with the caller's, and when the lease is lost. */
  async during<T>(signal: AbortSignal, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const either = new AbortController();
    const unlink = [signal, this.lost].map((each) => onAbort(each, () => either.abort(each.reason)));
    try {
      return await call(either.signal);
    } finally {
      for (const each of unlink) each();
    }
  }

  /** From here on somebody else renews it, or nobody. */
  stop(): void {
    this.#renewals.stop();
  }

  #leftMs(): number {
    return this.#extension.asked.now + this.hold.ttlMs * (1 - MARGIN_SHARE) - this.#clock.now();
  }
}
