/**
 * Keys that no candidate owns any more and that may still be in the store, or
 * may yet arrive there: of expired terms, and of deletes and puts whose answer
 * never came. They are looked for and removed while their lease lives.
 */
import type { Clock, Timer } from "../../seam/clock.js";
import { Backoff } from "../../kit/backoff.js";
import { isRetriable } from "../../kit/errors.js";
import type { CallLimits, EtcdClient } from "./client.js";
import { askTogether } from "./ask-together.js";
import type { CandidateKey } from "./candidate-key.js";

/** etcd accepts 128 operations in a transaction. */
const KEYS_PER_TRANSACTION = 120;
/** A put without an answer may arrive this much later; its key is looked for that long. */
const LATE_PUT_MS = 30_000;
/** A key that could not be removed stands in the way of others: it is tried again so soon, and later with every failure. */
const FIRST_RETRY_MS = 200;
const LONGEST_RETRY_MS = 5_000;

interface Window {
  /** Not removed before this time: until then its leader may still consider itself the leader. */
  readonly from: number;
  /** Its put may still arrive until this time. */
  readonly until: number;
}

export interface OrphanedKeysOptions {
  readonly client: EtcdClient;
  readonly clock: Clock;
  /** Of every request. */
  readonly limits: CallLimits;
  /** This key is certainly not in the store any more. */
  removed(candidateKey: CandidateKey): void;
}

export class OrphanedKeys {
  readonly #options: OrphanedKeysOptions;
  readonly #orphans = new Map<CandidateKey, Window>();
  #sweeping = false;
  /** Asked for while another was under way. */
  #sweepAgain = false;
  /** Fires when the next one may be removed: waiting for the next renewal would delay the next leader. */
  #timer: Timer | undefined;
  #timerAt = Infinity;
  readonly #backoff: Backoff;
  #retry: Timer | undefined;
  #closed = false;

  constructor(options: OrphanedKeysOptions) {
    this.#options = options;
    this.#backoff = new Backoff(options.clock, FIRST_RETRY_MS, LONGEST_RETRY_MS);
  }

  /** Its key is to be removed, but not before `from`. */
  add(candidateKey: CandidateKey, from = -Infinity): void {
    const until = candidateKey.token === undefined ? this.#options.clock.now() + LATE_PUT_MS : 0;
    this.#orphans.set(candidateKey, { from, until });
    if (from > -Infinity) return this.#wakeAt(from);
    this.#backoff.reset();
    this.#retry?.cancel();
    this.#retry = undefined;
    this.#sweepLater();
  }

  has(candidateKey: CandidateKey): boolean {
    return this.#orphans.has(candidateKey);
  }

  delete(candidateKey: CandidateKey): void {
    this.#orphans.delete(candidateKey);
  }

  /** Whether some of them may not be removed yet. */
  get waiting(): boolean {
    return this.#timerAt < Infinity;
  }

  close(): void {
    this.#closed = true;
    this.#retry?.cancel();
    this.#stopWaiting();
  }

  #stopWaiting(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#timerAt = Infinity;
  }

  /** Reads many keys at once, then removes those that exist. */
  async sweep(): Promise<void> {
    this.#sweepAgain = this.#sweeping;
    if (this.#sweeping) return;
    this.#sweeping = true;
    try {
      const now = this.#options.clock.now();
      const due = [...this.#orphans].flatMap(([candidateKey, { from }]) =>
        from <= now ? [candidateKey] : [],
      );
      for (let i = 0; i < due.length; i += KEYS_PER_TRANSACTION)
        await this.#sweepTogether(due.slice(i, i + KEYS_PER_TRANSACTION));
    } catch {
      // tried again below, and after the next renewal
    } finally {
      this.#sweeping = false;
    }
    if (this.#sweepAgain) await this.sweep();
    else this.#sweepLater();
  }

  /** The next renewal may be many seconds away, and until then a key that is still there keeps everybody else waiting. */
  #sweepLater(): void {
    const { clock } = this.#options;
    if (this.#closed || this.#retry !== undefined || !this.#anyDue()) return;
    this.#retry = clock.after(this.#backoff.next(), () => {
      this.#retry = undefined;
      void this.sweep();
    });
  }

  #anyDue(): boolean {
    const now = this.#options.clock.now();
    for (const { from } of this.#orphans.values()) if (from <= now) return true;
    return false;
  }

  /** One timer for all: the first that may be removed, then the next. */
  #wakeAt(at: number): void {
    if (at >= this.#timerAt || this.#closed) return;
    const { clock } = this.#options;
    this.#timer?.cancel();
    this.#timerAt = at;
    this.#timer = clock.after(Math.max(0, at - clock.now()), () => this.#wake());
  }

  #wake(): void {
    const now = this.#options.clock.now();
    this.#stopWaiting();
    let next = Infinity;
    for (const { from } of this.#orphans.values()) if (from > now) next = Math.min(next, from);
    if (next < Infinity) this.#wakeAt(next);
    void this.sweep();
  }

  /** One key that may not be removed must not keep the others in the store. */
  async #sweepTogether(candidateKeys: readonly CandidateKey[]): Promise<void> {
    const failures: unknown[] = [];
    await askTogether(
      candidateKeys,
      (some) => this.#sweepSome(some),
      (_, error) => failures.push(error),
    );
    for (const failure of failures) if (isRetriable(failure)) throw failure;
  }

  async #sweepSome(candidateKeys: readonly CandidateKey[]): Promise<void> {
    const { client, clock, limits, removed } = this.#options;
    const then = candidateKeys.map(({ key }) => ({ kind: "range", key, keysOnly: true }) as const);
    const { results } = await client.transaction({ when: [], then, otherwise: [] }, limits);
    for (const [i, candidateKey] of candidateKeys.entries()) {
      candidateKey.inItsPlace(results[i]?.kvs[0]);
      if (results[i]?.kvs.length !== 0) await candidateKey.remove(limits);
      if (clock.now() >= (this.#orphans.get(candidateKey)?.until ?? 0)) removed(candidateKey);
    }
  }
}
