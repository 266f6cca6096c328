/**
 * A hold with what Kubernetes adds to it: the watch tells at once when the
 * Lease was taken, cleared or deleted, and the pod's label follows the office.
 */
import type { CallOptions, Extension, Hold } from "../../seam/backend.js";
import type { Clock } from "../../seam/clock.js";
import { bounded } from "../../kit/wait.js";
import type { PodLabel } from "./route.js";
import type { LeaseStore } from "./store.js";

export interface OfficeOptions {
  readonly clock: Clock;
  readonly store: LeaseStore;
  readonly election: string;
  readonly candidate: string;
  readonly attemptMs: number;
  readonly label: PodLabel | undefined;
  /** Called once, when the office was left and nothing more has to be done for it. */
  readonly left: () => void;
}

export class Office {
  readonly #options: OfficeOptions;
  readonly #closed = new AbortController();
  readonly #revoked = new AbortController();
  #watching = false;
  #token: bigint | undefined;
  #labelled: Promise<void> = Promise.resolve();
  #leaving: Promise<void> | undefined;

  constructor(options: OfficeOptions) {
    this.#options = options;
  }

  /** Before a long wait for office, so that one watch serves candidate and leader alike; else when it is won. */
  watch(): void {
    if (this.#watching) return;
    this.#watching = true;
    const { store, election } = this.#options;
    void store.watch(election, () => void this.#look(), { signal: this.#closed.signal });
  }

  /** The hold was granted: from now on the watch is looked at, and the label put on. */
  enter(hold: Hold): Hold {
    this.#token = hold.token;
    this.watch();
    const { label, election } = this.#options;
    if (label !== undefined) this.#labelled = label.add(election, this.#closed.signal);
    const settle = (answer: Extension | "lost"): Extension | "lost" => {
      if (answer === "lost") void this.leave();
      return answer;
    };
    return {
      token: hold.token,
      asked: hold.asked,
      ttlMs: hold.ttlMs,
      revoked: this.#revoked.signal,
      renew: async (options) => settle(await hold.renew(options)),
      proclaim: async (value, options) => settle(await hold.proclaim(value, options)),
      release: async (options) => {
        await this.leave(options);
        await hold.release(options);
      },
    };
  }

  /**
   * Stops watching and takes the label off. Never throws: a label that cannot
   * be taken off must not keep the office from the next leader. It goes when
   * this process stands again. Later calls wait for the first.
   */
  leave(options?: CallOptions): Promise<void> {
    this.#leaving ??= this.#leave(options).finally(this.#options.left);
    return this.#leaving;
  }

  async #leave(options?: CallOptions): Promise<void> {
    this.#closed.abort();
    const { label, election, clock, attemptMs } = this.#options;
    if (label === undefined || this.#token === undefined) return;
    await this.#labelled; // a patch on its way would put the label on after us
    const signal = options?.signal ?? new AbortController().signal;
    try {
      // At most half of a release attempt: the release itself matters more.
      await bounded(clock, attemptMs / 2, signal, "taking the label off", (s) => label.remove(election, s));
    } catch {
      // Said above.
    }
  }

  /** What the watch brought: is the Lease still ours? A loss seen here is certain; not seeing one means nothing. */
  async #look(): Promise<void> {
    const { clock, store, election, candidate, attemptMs } = this.#options;
    if (this.#token === undefined || this.#closed.signal.aborted) return;
    try {
      const entry = await bounded(clock, attemptMs, this.#closed.signal, "looking at the Lease", (signal) =>
        store.read(election, { signal }),
      );
      if (entry !== null && (entry.record.holder === candidate || entry.version <= this.#token)) return;
      this.#revoked.abort();
      await this.leave();
    } catch {
      // Unknown: the renewals decide.
    }
  }
}
