/** Following who leads: retried until it is stopped. It never goes back, unless the store itself does; that is reported. */
import type { Leader } from "../seam/backend.js";
import type { Backoff } from "../kit/backoff.js";
import type { Clock } from "../seam/clock.js";
import type { Reports } from "../law/reports.js";
import { wentBack } from "../law/token-floor.js";
import { sleep } from "../kit/wait.js";

export interface ObserveLeadersOptions {
  readonly follow: () => AsyncIterable<Leader | null>;
  readonly clock: Clock;
  readonly backoff: Backoff;
  readonly signal: AbortSignal;
  readonly seen: (token: bigint) => void;
  readonly failed: (error: unknown) => void;
}

export async function* observeLeaders(
  options: ObserveLeadersOptions,
): AsyncGenerator<Leader | null, void, undefined> {
  const { signal, clock, backoff } = options;
  const order = new LeaderOrder();
  while (!signal.aborted) {
    try {
      for await (const leader of options.follow()) {
        if (signal.aborted) return;
        backoff.reset();
        const { highest } = order;
        const sighting = order.sees(leader);
        if (sighting === "known") continue;
        if (leader !== null) options.seen(leader.token);
        if (leader !== null && sighting === "regression") options.failed(wentBack(leader.token, highest));
        yield leader;
      }
    } catch (error) {
      if (signal.aborted) return;
      options.failed(error);
    }
    await sleep(clock, backoff.next(), signal);
  }
}

/** `known`: nothing to report. `regression`: the store has gone back, and from now on this is the order. */
type Sighting = "news" | "known" | "regression";

/** What is news: another token, a new value of the same term, the end of a term. A term that has ended stays ended. */
class LeaderOrder {
  #last: Leader | null | undefined;
  #highest = -1n;
  #vacated = -1n;

  get highest(): bigint {
    return this.#highest;
  }

  sees(leader: Leader | null): Sighting {
    if (leader === null) {
      if (this.#last === null) return "known";
      this.#last = null;
      this.#vacated = this.#highest;
      return "news";
    }
    if (leader.token === this.#vacated) return "known";
    if (this.#last?.token === leader.token && this.#last.value === leader.value) return "known";
    const regression = leader.token < this.#highest;
    if (regression) this.#vacated = -1n;
    this.#highest = leader.token;
    this.#last = leader;
    return regression ? "regression" : "news";
  }
}

/** Turns observation into `leader` events while someone listens to them. */
export class LeaderFeed {
  readonly #events: Reports;
  readonly #observe: (signal: AbortSignal) => AsyncIterable<Leader | null>;
  #active: { readonly controller: AbortController; readonly done: Promise<void> } | undefined;

  constructor(events: Reports, observe: (signal: AbortSignal) => AsyncIterable<Leader | null>) {
    this.#events = events;
    this.#observe = observe;
  }

  /** Starts to follow, unless it does. Settles when it has stopped. */
  start(): Promise<void> {
    if (this.#active === undefined) {
      const controller = new AbortController();
      this.#active = { controller, done: this.#follow(controller.signal) };
    }
    return this.#active.done;
  }

  stop(): void {
    this.#active?.controller.abort();
    this.#active = undefined;
  }

  async #follow(signal: AbortSignal): Promise<void> {
    for await (const leader of this.#observe(signal)) {
      if (signal.aborted) return;
      this.#events.emit("leader", { leader });
    }
  }
}
