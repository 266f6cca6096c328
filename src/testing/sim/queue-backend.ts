/**
 * A reference backend of the queue family, as small as it can be: one lease and
 * one key for each campaign, lowest create revision leads, everyone waits for
 * the key just ahead. It exists so that core is tried against a store that
 * serves in order and times leases itself.
 */
import type {
  Backend,
  CallOptions,
  CampaignOptions,
  Candidacy,
  Extension,
  Guarantees,
  Hold,
  Leader,
  ObserveOptions,
  RecordStore,
} from "../../core/backend.js";
import type { Clock } from "../../core/clock.js";
import { ConclaveError } from "../../core/errors.js";
import { bounded, onAbort, sleep } from "../../core/waiting.js";
import type { SimEtcd, SimKeyValue } from "./etcd-server.js";

const GUARANTEES: Guarantees = {
  exclusion: "linearizable",
  expiry: "store",
  token: "revision",
  succession: "fifo",
  ttl: { minMs: 2_000, stepMs: 1_000 },
};

interface Place {
  readonly lease: bigint;
  readonly ttlMs: number;
  readonly key: string;
  readonly createRevision: bigint;
}

export class QueueBackend implements Backend {
  readonly name = "sim-queue";
  readonly guarantees = GUARANTEES;
  readonly #clock: Clock;
  readonly #etcd: SimEtcd;
  readonly #forsaking = new Set<Promise<void>>();

  constructor(clock: Clock, etcd: SimEtcd) {
    this.#clock = clock;
    this.#etcd = etcd;
  }

  get records(): RecordStore {
    throw new ConclaveError("unsupported", "the simulated queue keeps no records");
  }

  async campaign(candidacy: Candidacy, { wait, signal }: CampaignOptions): Promise<Hold | null> {
    const { attemptMs } = candidacy;
    const { id: lease, ttlSeconds } = await this.#bounded(attemptMs, signal, (call) =>
      this.#etcd.grant(candidacy.ttlMs / 1000, call),
    );
    try {
      const place = await this.#queue(candidacy, lease, ttlSeconds * 1000, signal);
      const hold = await this.#advance(candidacy, place, wait, signal);
      if (hold === null) await this.#leave(lease, attemptMs);
      return hold;
    } catch (error) {
      // Nothing may be left that could win later: what this cannot remove dies with the lease nobody renews.
      await this.#leave(lease, attemptMs);
      throw error;
    }
  }

  async *observe(election: string, options: ObserveOptions): AsyncGenerator<Leader | null, void, undefined> {
    const { signal, pollMs, attemptMs } = options;
    let last: SimKeyValue | null | undefined;
    while (!signal.aborted) {
      const first = { key: `${election}/`, prefix: true, limit: 1 };
      const { kvs } = await this.#bounded(attemptMs, signal, (call) => this.#etcd.range(first, call));
      const kv = kvs[0] ?? null;
      if (last === undefined || kv?.modRevision !== last?.modRevision) yield leaderOf((last = kv));
      await sleep(this.#clock, pollMs, signal);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#forsaking);
  }

  async #queue(candidacy: Candidacy, lease: bigint, ttlMs: number, signal: AbortSignal): Promise<Place> {
    const key = `${candidacy.election}/${lease.toString(16)}`;
    const value = JSON.stringify([candidacy.candidate, candidacy.value]);
    const { succeeded, header } = await this.#bounded(candidacy.attemptMs, signal, (call) =>
      this.#etcd.txn({ compare: [{ key, createRevision: 0n }], success: [{ put: { key, value, lease } }], failure: [] }, call),
    );
    if (!succeeded) throw new ConclaveError("conflict", `key ${key} of a fresh lease exists already`, { retriable: true });
    return { lease, ttlMs, key, createRevision: header.revision };
  }

  /** Waits until nobody is ahead, and confirms it. */
  async #advance(candidacy: Candidacy, place: Place, wait: boolean, signal: AbortSignal): Promise<Hold | null> {
    const { attemptMs, election } = candidacy;
    const hold = new QueueHold(this.#clock, this.#etcd, place, candidacy);
    for (;;) {
      const ahead = await this.#bounded(attemptMs, signal, (call) =>
        this.#etcd.range(
          {
            key: `${election}/`,
            prefix: true,
            maxCreateRevision: place.createRevision - 1n,
            order: "descending",
            limit: 1,
          },
          call,
        ),
      );
      const blocker = ahead.kvs[0];
      if (blocker !== undefined && !wait) return null;
      if (blocker !== undefined) await this.#untilGone(blocker, ahead.header.revision, place, candidacy, signal);
      // Whatever was waited for, our own place may be gone by now: only this answer says that it is not.
      const extension = await this.#bounded(attemptMs, signal, (call) => hold.renew(call));
      if (extension === "lost") throw new ConclaveError("unavailable", "our place in the queue is gone");
      if (blocker === undefined) return hold.opened(extension.askedAt);
    }
  }

  /** Until the key ahead is gone, or it is time to look and to renew our place. A watch that breaks only costs time. */
  async #untilGone(
    blocker: SimKeyValue,
    revision: bigint,
    place: Place,
    candidacy: Candidacy,
    signal: AbortSignal,
  ): Promise<void> {
    const woken = new AbortController();
    const unlink = onAbort(signal, () => woken.abort());
    const target = { key: blocker.key, fromRevision: revision + 1n };
    const gone = (events: readonly { type: string }[]): void => {
      if (events.some(({ type }) => type === "delete")) woken.abort();
    };
    void this.#etcd.watch(target, gone, { signal: woken.signal }).catch(() => {});
    const pause = Math.min(candidacy.ttlMs / 2, place.ttlMs / 3) * (0.8 + 0.2 * this.#clock.random());
    await sleep(this.#clock, pause, woken.signal);
    woken.abort();
    unlink();
    signal.throwIfAborted();
  }

  /** `close()` waits for what is being tidied up. */
  #leave(lease: bigint, attemptMs: number): Promise<void> {
    const leaving = this.#forsake(lease, attemptMs).finally(() => this.#forsaking.delete(leaving));
    this.#forsaking.add(leaving);
    return leaving;
  }

  async #forsake(lease: bigint, attemptMs: number): Promise<void> {
    try {
      await this.#bounded(attemptMs, new AbortController().signal, (call) => this.#etcd.revoke(lease, call));
    } catch {
      // It ends by itself.
    }
  }

  #bounded<T>(attemptMs: number, signal: AbortSignal, call: (call: CallOptions) => Promise<T>): Promise<T> {
    return bounded(this.#clock, attemptMs, signal, "a request to the queue", (s) => call({ signal: s }));
  }
}

class QueueHold implements Hold {
  readonly token: bigint;
  readonly ttlMs: number;
  askedAt = -Infinity;
  readonly #clock: Clock;
  readonly #etcd: SimEtcd;
  readonly #place: Place;
  readonly #candidate: string;

  constructor(clock: Clock, etcd: SimEtcd, place: Place, candidacy: Candidacy) {
    this.token = place.createRevision;
    this.ttlMs = place.ttlMs;
    this.#clock = clock;
    this.#etcd = etcd;
    this.#place = place;
    this.#candidate = candidacy.candidate;
  }

  opened(askedAt: number): this {
    this.askedAt = askedAt;
    return this;
  }

  /** The lease must be extended *and* the key be ours, by the word of one and the same leader of the store. */
  async renew(options: CallOptions): Promise<Extension | "lost"> {
    const askedAt = this.#clock.now();
    const alive = await this.#etcd.keepAlive(this.#place.lease, options);
    const check = await this.#guarded([], options);
    if (!check.succeeded) return "lost";
    if (alive.ttlSeconds <= 0 || alive.header.raftTerm !== check.header.raftTerm) {
      throw new ConclaveError("unavailable", "the keep-alive and the key do not agree on who leads the store");
    }
    return { askedAt };
  }

  async proclaim(value: string, options: CallOptions): Promise<Extension | "lost"> {
    const { key, lease } = this.#place;
    const put = { key, value: JSON.stringify([this.#candidate, value]), lease };
    const { succeeded } = await this.#guarded([{ put }], options);
    return succeeded ? this.renew(options) : "lost";
  }

  async release(options: CallOptions): Promise<void> {
    await this.#etcd.revoke(this.#place.lease, options);
  }

  #guarded(success: Parameters<SimEtcd["txn"]>[0]["success"], options: CallOptions): ReturnType<SimEtcd["txn"]> {
    const { key, createRevision } = this.#place;
    return this.#etcd.txn({ compare: [{ key, createRevision }], success, failure: [] }, options);
  }
}

function leaderOf(kv: SimKeyValue | null): Leader | null {
  if (kv === null) return null;
  const [candidate, value] = JSON.parse(kv.value) as [string, string];
  return { candidate, token: kv.createRevision, value };
}
