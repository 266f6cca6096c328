/**
 * What Kubernetes adds to a hold: a watch that detects at once when the Lease
 * was taken, cleared or deleted, and the label of the leading pod.
 */
import type { CallOptions, Extension, Hold } from "../../seam/backend.js";
import type { Clock } from "../../seam/clock.js";
import { bounded } from "../../kit/wait.js";
import type { PodLabel } from "./route.js";
import type { LeaseStore } from "./store.js";

export interface LeaseWatchAndLabelOptions {
  readonly clock: Clock;
  readonly store: Pick<LeaseStore, "watch" | "read">;
  readonly election: string;
  readonly candidate: string;
  readonly attemptMs: number;
  readonly label: Pick<PodLabel, "add" | "remove"> | undefined;
  /** Called once, when the watch has stopped and the label is removed. */
  readonly left: () => void;
}

export class LeaseWatchAndLabel {
  readonly #options: LeaseWatchAndLabelOptions;
  readonly #closed = new AbortController();
  readonly #revoked = new AbortController();
  #watching = false;
  #token: bigint | undefined;
  #labelled: Promise<void> = Promise.resolve();
  #leaving: Promise<void> | undefined;

  constructor(options: LeaseWatchAndLabelOptions) {
    this.#options = options;
  }

  /** Called before waiting to be elected, so that one watch serves candidate and leader; else when elected. */
  watch(): void {
    if (this.#watching) return;
    this.#watching = true;
    const { store, election } = this.#options;
    void store.watch(election, () => void this.#check(), { signal: this.#closed.signal });
  }

  /** The hold was granted: from now on changes are checked, and the label is set. */
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
   * Stops watching and removes the label. Never throws: a label that cannot be
   * removed must not delay the next leader. It is removed when this process
   * campaigns again. Later calls wait for the first.
   */
  leave(options?: CallOptions): Promise<void> {
    this.#leaving ??= this.#leave(options).finally(this.#options.left);
    return this.#leaving;
  }

  async #leave(options?: CallOptions): Promise<void> {
    this.#closed.abort();
    const { label, election, clock, attemptMs } = this.#options;
    if (label === undefined || this.#token === undefined) return;
    await this.#labelled; // a patch under way would set the label again
    const signal = options?.signal ?? new AbortController().signal;
    try {
      // At most half of a release attempt: the release itself matters more.
      await bounded(clock, attemptMs / 2, signal, "removing the label", (s) => label.remove(election, s));
    } catch {
      // Removed when this process campaigns again.
    }
  }

  /** The watch reported a change: is the Lease still ours? A loss seen here is certain; not seeing one proves nothing. */
  async #check(): Promise<void> {
    const { clock, store, election, candidate, attemptMs } = this.#options;
    if (this.#token === undefined || this.#closed.signal.aborted) return;
    try {
      const entry = await bounded(clock, attemptMs, this.#closed.signal, "reading the Lease", (signal) =>
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
