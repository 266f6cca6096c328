/**
 * One etcd lease shared by many candidate keys: a session that is renewed here,
 * once for all of them, while any candidate leads or waits on it.
 */
import type { Clock, Reading } from "../../seam/clock.js";
import type { Extension, Session, SessionFollower } from "../../seam/backend.js";
import { type Stop, StopSource } from "../../kit/stop.js";
import { ConclaveError, describe } from "../../kit/errors.js";
import { SessionFollowers } from "../../session/followers.js";
import type { EtcdClient } from "./client.js";
import { type LeaseOwner, LeaseUpkeep } from "./lease-upkeep.js";
import { CandidateKey, type CandidateKeyRequest } from "./candidate-key.js";
import { CombinedTransactions } from "./combined-transactions.js";
import { loseAll } from "./lose-all.js";
import { OrphanedKeys } from "./orphaned-keys.js";
import { PredecessorLookup } from "./predecessor-lookup.js";

export interface SharedLeaseOptions {
  readonly client: EtcdClient;
  readonly clock: Clock;
  readonly id: bigint;
  readonly ttlMs: number;
  readonly asked: Reading;
  /** Called when nothing of it is under way any more. */
  readonly retired: (lease: SharedLease) => void;
}

export class SharedLease implements Session {
  readonly id: bigint;
  readonly ttlMs: number;
  /** For all candidates that wait on this lease. */
  readonly predecessorLookup: PredecessorLookup;
  /** For those that join and leave. */
  readonly transactions: CombinedTransactions;
  readonly #client: EtcdClient;
  readonly #clock: Clock;
  readonly #retired: (lease: SharedLease) => void;
  readonly #closing = new AbortController();
  readonly #candidateKeys = new Set<CandidateKey>();
  readonly #orphans: OrphanedKeys;
  /** One candidate key for each election: the lease is part of the key. Orphaned keys stay until they are removed. */
  readonly #elections = new Map<string, CandidateKey>();
  readonly #upkeep: LeaseUpkeep;
  readonly #followers: SessionFollowers<CandidateKey>;
  /** Some key this candidate may read, for renewals before there is a candidate key. */
  #anyKey = "";
  #ended: "lost" | "retired" | undefined;
  #closed: Promise<void> = Promise.resolve();

  constructor(options: SharedLeaseOptions) {
    this.#client = options.client;
    this.#clock = options.clock;
    this.#orphans = new OrphanedKeys({
      ...{ client: options.client, clock: options.clock },
      limits: { signal: this.#closing.signal, limitMs: options.ttlMs / 4 },
      removed: (candidateKey) => this.forget(candidateKey),
    });
    this.#followers = new SessionFollowers({
      ...{ clock: options.clock, ttlMs: options.ttlMs },
      candidates: () => this.#candidateKeys,
      extendedAt: () => this.extension.asked.now,
      expired: (candidateKey) => this.#abandon(candidateKey),
    });
    this.transactions = new CombinedTransactions(options.client, options.clock);
    this.predecessorLookup = new PredecessorLookup(options.client, options.clock);
    this.#retired = options.retired;
    this.id = options.id;
    this.ttlMs = options.ttlMs;
    this.#upkeep = new LeaseUpkeep({ ...options, owner: this.#owner(), signal: this.#closing.signal });
  }

  get extension(): Extension {
    return this.#upkeep.extension;
  }

  get ended(): boolean {
    return this.#ended !== undefined;
  }

  /** Whether a candidate of this election may use it: two candidates cannot have the same key. */
  serves(election: string): boolean {
    if (this.ended || this.#elections.has(election)) return false;
    return this.#candidateKeys.size > 0 || this.isFresh;
  }

  addKey(key: string, request: CandidateKeyRequest): CandidateKey {
    const candidateKey = new CandidateKey(this.#client, this, key, request);
    this.#anyKey = key;
    this.#elections.set(request.election, candidateKey);
    this.#candidateKeys.add(candidateKey);
    return candidateKey;
  }

  /** Our own candidate with this token, if it is one of ours. */
  candidateOf(election: string, token: bigint): string | undefined {
    const candidateKey = this.#elections.get(election);
    return candidateKey?.token === token ? candidateKey.candidate : undefined;
  }

  /** Whether its extension is young enough to build on. */
  get isFresh(): boolean {
    return this.#upkeep.ageMs < this.ttlMs / 2;
  }

  async fresh(): Promise<Extension> {
    return this.isFresh ? this.extension : this.renew();
  }

  /** A newer extension of this key, by a renewal that read it: a renewal that was already under way may not have. */
  async renewFor(candidateKey: CandidateKey): Promise<Extension> {
    for (let attempt = 0; attempt <= 2; attempt++) {
      if (candidateKey.lost !== undefined) throw candidateKey.lost;
      if (candidateKey.extension !== undefined && candidateKey.extension.asked.now > candidateKey.handedOut)
        return candidateKey.extension;
      if (attempt < 2) await this.renew();
    }
    throw new ConclaveError(
      "unavailable",
      `the key of election "${candidateKey.election}" was not read in this renewal; asking again`,
    );
  }

  follow(follower: SessionFollower): () => void {
    return this.#followers.follow(follower);
  }

  /** A hold was returned for this key. */
  handedOut(candidateKey: CandidateKey): void {
    candidateKey.state = "held";
    candidateKey.handedOut = this.extension.asked.now;
    this.#followers.handedOut();
  }

  /** One renewal now, shared with everybody who asks while it is under way. */
  renew(): Promise<Extension> {
    return this.#upkeep.renew();
  }

  /** Removes the key from the store. If that fails it is tried again as long as the lease lives. */
  async remove(candidateKey: CandidateKey, signal: Stop, limitMs: number): Promise<void> {
    if (candidateKey.state === "left" && !this.#orphans.has(candidateKey)) return;
    try {
      await candidateKey.remove({ signal, limitMs });
    } catch (error) {
      this.#abandon(candidateKey);
      throw error;
    }
    // With the token unknown, the put itself may still be on its way.
    if (candidateKey.sent && candidateKey.token === undefined && candidateKey.lost === undefined)
      this.#abandon(candidateKey);
    else this.leave(candidateKey);
  }

  /** The store answered a write with "no such lease". */
  notFound(): void {
    this.#lose("its lease is gone");
  }

  /** Ends the lease. It is revoked, so that nothing is left, unless a term may still be held on it. */
  close(limitMs: number): Promise<void> {
    if (this.#ended !== undefined) return this.#closed;
    const now = this.#clock.now();
    const held =
      now < this.extension.asked.now + this.ttlMs &&
      [...this.#candidateKeys].some((candidateKey) => candidateKey.state === "held");
    const maybeLeading = held || this.#orphans.waiting;
    this.#end("retired");
    this.#tellLost("its lease was given up");
    if (!maybeLeading) this.#closed = this.#revoke(limitMs).finally(() => this.#retired(this));
    else this.#retired(this);
    return this.#closed;
  }

  async #revoke(limitMs: number): Promise<void> {
    const never = new StopSource();
    await this.#client.leaseRevoke(this.id, { signal: never, limitMs }).catch(() => {}); // it runs out by itself
  }

  /** What renewals tell, and ask. */
  #owner(): LeaseOwner {
    return {
      ended: () => this.ended,
      anyKey: () => this.#anyKey,
      candidateKeys: () => [...this.#candidateKeys],
      due: () => this.#due(),
      denied: (candidateKey, error) => this.#deny(candidateKey, error),
      attempted: (attempt) => this.#followers.attempted(attempt),
      renewed: () => void this.#orphans.sweep(),
      useless: () => void this.close(this.ttlMs / 4),
      gone: () => this.#lose("its lease is gone"),
      wentBack: (known, revision) => this.#wentBack(known, revision),
    };
  }

  /** After a restore from a backup the store may have keys of this lease that were deleted long ago: it is given up. */
  #wentBack(known: bigint, revision: bigint): ConclaveError {
    this.#end("lost");
    this.#tellLost("etcd was restored from a backup");
    this.#closed = this.#revoke(this.ttlMs / 4).finally(() => this.#retired(this));
    return new ConclaveError(
      "unavailable",
      `etcd's revision went back from ${known} to ${revision}: it was wiped or restored; its lease is given up`,
    );
  }

  /** Called when a renewal is due; `undefined`: no candidate uses the lease and it is given up. */
  async #due(): Promise<Extension | undefined> {
    if (this.#candidateKeys.size > 0 || this.#orphans.waiting) return this.renew();
    await this.close(this.ttlMs / 4); // orphaned keys are deleted with it
    return undefined;
  }

  /** Only this key may not be read: terms on other keys go on. */
  #deny(candidateKey: CandidateKey, error: unknown): void {
    if (candidateKey.state !== "held") return candidateKey.fail(error);
    // The first denial may come from a server that does not have our role yet: the renewal is tried again.
    if (++candidateKey.denials < 2) throw new ConclaveError("unavailable", describe(error));
    candidateKey.deny();
    this.#abandon(candidateKey);
  }

  /** The term on this key ended without a release: the key is removed when its lease would have expired. */
  abandon(candidateKey: CandidateKey, at: number): void {
    if (candidateKey.state === "held") this.#abandon(candidateKey, at);
  }

  /** No candidate owns the key any more: it has to be removed, not before `from`. */
  #abandon(candidateKey: CandidateKey, from?: number): void {
    if (candidateKey.state === "left") return;
    candidateKey.leave();
    this.#candidateKeys.delete(candidateKey);
    this.#orphans.add(candidateKey, from);
  }

  /** The key is certainly not in the store any more. */
  leave(candidateKey: CandidateKey): void {
    candidateKey.leave();
    this.forget(candidateKey);
  }

  forget(candidateKey: CandidateKey): void {
    this.#candidateKeys.delete(candidateKey);
    this.#orphans.delete(candidateKey);
    if (this.#elections.get(candidateKey.election) === candidateKey)
      this.#elections.delete(candidateKey.election);
  }

  #lose(why: string): void {
    this.#end("lost");
    this.#retired(this);
    this.#tellLost(why);
  }

  /** Followers first: it ends their terms. */
  #tellLost(why: string): void {
    this.#followers.lost();
    // Whoever closes the backend finds nothing under way afterwards.
    loseAll(this.#candidateKeys, why, this.#ended === "retired" ? undefined : this.#clock);
  }

  #end(how: "lost" | "retired"): void {
    if (this.#ended !== undefined) return;
    this.#ended = how;
    this.#upkeep.stop();
    this.#followers.end();
    this.#orphans.close();
    this.#closing.abort(new ConclaveError("unavailable", "the etcd lease is gone"));
  }
}
