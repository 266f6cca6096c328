/**
 * Says to the log whom a waiting candidate waits for: with one read of the store
 * for each new leader that its campaign meets. Without a logger nothing is read.
 */
import type { Backend, Leader } from "../seam/backend.js";
import type { Clock } from "../seam/clock.js";
import type { Reports } from "../law/reports.js";
import type { Timing } from "../law/timing.js";
import { bounded } from "../kit/wait.js";

export interface Following {
  readonly election: string;
  readonly candidate: string;
  readonly backend: Backend;
  readonly clock: Clock;
  readonly timing: Timing;
  readonly events: Reports;
  track<T>(promise: Promise<T>): Promise<T>;
}

export class FollowerLog {
  readonly #of: Following;
  #newest: bigint | undefined;
  #said: bigint | undefined;
  #looking = false;

  constructor(of: Following) {
    this.#of = of;
  }

  /** A campaign met this token in the store. One that does not wait is told the answer anyway. Returns the token. */
  met(token: bigint, waits: boolean, signal: AbortSignal): bigint {
    if (waits && this.#of.events.logs && (this.#newest === undefined || token > this.#newest)) {
      this.#newest = token;
      this.#begin(signal);
    }
    return token;
  }

  #begin(signal: AbortSignal): void {
    const { track } = this.#of;
    if (this.#looking) return;
    this.#looking = true;
    // What goes wrong here goes wrong for the campaign too, and is reported by it.
    const looked = this.#look(signal).catch(() => {});
    void track.call(
      this.#of,
      looked.finally(() => (this.#looking = false)),
    );
  }

  async #look(signal: AbortSignal): Promise<void> {
    const { election, candidate, backend, clock, timing, events } = this.#of;
    const { attemptMs, retryMs } = timing;
    const ask = async (limited: AbortSignal): Promise<Leader | null> => {
      const options = { signal: limited, pollMs: retryMs, attemptMs };
      for await (const leader of backend.observe(election, options)) return leader;
      return null;
    };
    const leader = await bounded(clock, 2 * attemptMs, signal, "asking who leads", ask);
    if (leader === null || leader.candidate === candidate || leader.token === this.#said) return;
    this.#said = leader.token;
    if (!signal.aborted && events.token === undefined)
      events.log("info", `following: ${leader.candidate} leads with token ${leader.token}`);
  }
}
