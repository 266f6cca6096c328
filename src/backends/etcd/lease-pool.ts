/**
 * The leases of one backend: one for each ttl, shared by all its elections. A
 * second candidate of the same election needs a lease of its own, since the
 * lease is part of its key.
 */
import { readClocks } from "../../kit/clock.js";
import { type Clock } from "../../seam/clock.js";
import { ConclaveError } from "../../kit/errors.js";
import { StopSource } from "../../kit/stop.js";
import { limited, untilAborted } from "../../kit/wait.js";
import type { CallLimits, EtcdClient } from "./client.js";
import { hex } from "./keys.js";
import type { CandidateKey, CandidateKeyRequest } from "./candidate-key.js";
import { SharedLease } from "./shared-lease.js";

export class LeasePool {
  readonly #client: EtcdClient;
  readonly #clock: Clock;
  readonly #leases = new Map<number, Set<SharedLease>>();
  readonly #granting = new Map<number, Promise<SharedLease>>();
  readonly #closing = new AbortController();

  constructor(client: EtcdClient, clock: Clock) {
    this.#client = client;
    this.#clock = clock;
  }

  /** A candidate key, not yet in the store, on a lease of at least this ttl. */
  async createKey(
    request: CandidateKeyRequest & { readonly ttlMs: number; readonly key: (leaseHex: string) => string },
    limits: CallLimits,
  ): Promise<{ readonly candidateKey: CandidateKey; readonly lease: SharedLease }> {
    const seconds = Math.ceil(request.ttlMs / 1000);
    for (;;) {
      for (const lease of this.#leases.get(seconds) ?? []) {
        if (!lease.serves(request.election)) continue;
        return { lease, candidateKey: lease.addKey(request.key(hex(lease.id)), request) };
      }
      await untilAborted(limits.signal, this.#grant(seconds, limits.limitMs));
    }
  }

  /** The id of our own candidate that has this lease in this election. */
  candidateOf(election: string, lease: bigint, token: bigint): string | undefined {
    for (const set of this.#leases.values()) {
      for (const own of set) if (own.id === lease) return own.candidateOf(election, token);
    }
    return undefined;
  }

  async close(limitMs: number): Promise<void> {
    this.#closing.abort(closed());
    await Promise.allSettled(
      [...this.#leases.values()].flatMap((set) => [...set].map((lease) => lease.close(limitMs))),
    );
  }

  /** One request, however many candidates wait for it. */
  #grant(seconds: number, limitMs: number): Promise<SharedLease> {
    const granting =
      this.#granting.get(seconds) ??
      this.#ask(seconds, limitMs).finally(() => {
        this.#granting.delete(seconds);
      });
    this.#granting.set(seconds, granting);
    return granting;
  }

  async #ask(seconds: number, limitMs: number): Promise<SharedLease> {
    const asked = readClocks(this.#clock);
    const { id, ttl } = await limited(
      this.#clock,
      limitMs,
      this.#closing.signal,
      "the etcd lease grant",
      (signal) => this.#client.leaseGrant(BigInt(seconds), { signal, limitMs }),
    );
    if (this.#closing.signal.aborted || ttl !== BigInt(seconds)) {
      const never = new StopSource();
      await this.#client.leaseRevoke(id, { signal: never, limitMs }).catch(() => {}); // it runs out by itself
      throw this.#closing.signal.aborted ? closed() : wrongTtl(seconds, ttl);
    }
    const set = this.#leases.get(seconds) ?? new Set();
    this.#leases.set(seconds, set);
    const lease = new SharedLease({
      client: this.#client,
      clock: this.#clock,
      id,
      ttlMs: seconds * 1000,
      asked,
      retired: () => set.delete(lease),
    });
    set.add(lease);
    return lease;
  }
}

function closed(): ConclaveError {
  return new ConclaveError("state", "this etcd backend is closed; open a new one");
}

function wrongTtl(asked: number, granted: bigint): ConclaveError {
  return new ConclaveError(
    "invalid",
    `a lease of ${asked} s was asked for, but etcd grants no less than ${granted} s (its election timeout sets the minimum): ` +
      `use a ttl of at least ${granted} s`,
  );
}
