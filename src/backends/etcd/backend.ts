/** Elections on etcd. */
import type {
  BackendWithRecords,
  CallOptions,
  CampaignOptions,
  Candidacy,
  Claim,
  Forgotten,
  Guarantees,
  Heir,
  Hold,
  Leader,
  Listing,
  ObserveOptions,
} from "../../seam/backend.js";
import type { RecordStore } from "../../seam/table.js";
import { systemClock } from "../../kit/clock.js";
import { type Clock } from "../../seam/clock.js";
import { ConclaveError } from "../../kit/errors.js";
import { type Stop, StopSource } from "../../kit/stop.js";
import { limited, onAbort, throwIfStopped } from "../../kit/wait.js";
import type { CallLimits, EtcdClient, KeyValue } from "./client.js";
import { EtcdError } from "./client/errors.js";
import { EtcdHold } from "./hold.js";
import { Keys } from "./keys.js";
import { clearTheWay } from "./clear-the-way.js";
import { KeyLayout, type Layout, type Outcome, QueueLayout, type CampaignAttempt } from "./layouts.js";
import { LeasePool } from "./lease-pool.js";
import { listElections } from "./list.js";
import { observeLeader } from "./observe.js";
import { releaseClaim } from "./release-claim.js";
import { EtcdRecords } from "./records.js";
import type { CandidateKey } from "./candidate-key.js";
import type { SharedLease } from "./shared-lease.js";
import type { Stance } from "./stand-aside.js";

/** How keys are laid out: `queue` as etcdctl and Go do, `key` as one key for all. */
export type EtcdLayout = "queue" | "key";

export interface EtcdBackendParts {
  readonly client: EtcdClient;
  /** Whether closing the backend closes the client. */
  readonly ownsClient: boolean;
  /** Put before every key; empty, or ending with a slash. */
  readonly prefix?: string | undefined;
  readonly layout?: EtcdLayout | undefined;
  readonly clock?: Clock | undefined;
}

/** How long a cancelled campaign waits for its key to be removed; after that the removal goes on by itself. */
const WITHDRAW_MS = 500;
const CLOSE_MS = 2_000;
/** Longest a request for a claim may take; the caller's signal may end it sooner. */
const CLAIM_MS = 5_000;
/** Longest one page of a listing may take. */
const LIST_MS = 5_000;

export class EtcdBackend implements BackendWithRecords {
  readonly name = "etcd";
  readonly guarantees: Guarantees;
  readonly timing = { ttlMs: 10_000 };
  readonly records: RecordStore;
  readonly #client: EtcdClient;
  readonly #ownsClient: boolean;
  readonly #clock: Clock;
  readonly #layout: Layout;
  readonly #keys: Keys;
  readonly #leases: LeasePool;
  /** Campaigns under way, each with the controller that stops it. */
  readonly #campaigns = new Map<StopSource, Promise<unknown>>();
  /** Whether we may write identity keys: a role for the election's own keys alone does not allow it. */
  #identityKeys = true;
  #closed: Promise<void> | undefined;

  constructor(parts: EtcdBackendParts) {
    const keys = new Keys(parts.prefix ?? "");
    this.#keys = keys;
    this.#client = parts.client;
    this.#ownsClient = parts.ownsClient;
    this.#clock = parts.clock ?? systemClock;
    this.#layout = parts.layout === "key" ? new KeyLayout(keys) : new QueueLayout(keys);
    this.#leases = new LeasePool(this.#client, this.#clock);
    this.records = new EtcdRecords(this.#client, keys);
    this.guarantees = {
      exclusion: "linearizable",
      expiry: "store",
      token: "revision",
      succession: this.#layout.succession,
      honours: this.#layout.honours,
      // What a server with its usual election timeout grants at least; one with a longer timeout says so when asked.
      ttl: { minMs: 2_000, stepMs: 1_000 },
    };
  }

  async campaign(candidacy: Candidacy, options: CampaignOptions): Promise<Hold | null> {
    this.#assertOpen();
    const { signal } = options;
    const stop = new StopSource();
    const unlink = onAbort(signal, () => stop.stop(signal.reason));
    const campaign = this.#campaign(candidacy, options, stop).finally(() => {
      unlink();
      this.#campaigns.delete(stop);
    });
    this.#campaigns.set(stop, campaign);
    return campaign;
  }

  async #campaign(candidacy: Candidacy, options: CampaignOptions, stop: Stop): Promise<Hold | null> {
    const stance: Stance = { vacancy: undefined };
    for (;;) {
      const outcome = await this.#attempt(candidacy, options, stop, stance);
      if (outcome !== "left") return outcome;
    }
  }

  /** `"left"`: it gave way to others, and has to join the queue again. */
  async #attempt(
    candidacy: Candidacy,
    { wait, seen }: CampaignOptions,
    stop: Stop,
    stance: Stance,
  ): Promise<Hold | null | "left"> {
    const { election, candidate, ttlMs, value, attemptMs } = candidacy;
    const limits: CallLimits = { signal: stop, limitMs: attemptMs };
    const standBackMs = candidacy.standBackMs ?? (() => 0);
    const key = (leaseHex: string): string => this.#layout.keyName(election, leaseHex);
    const { candidateKey, lease } = await this.#leases.createKey(
      { election, candidate, ttlMs, key, seen },
      limits,
    );
    try {
      const { client, clock } = { client: this.#client, clock: this.#clock };
      const won = await this.#join({
        client,
        candidateKey,
        lease,
        value,
        wait,
        limits,
        clock,
        standBackMs,
        stance,
      });
      throwIfStopped(stop);
      if (won === "left") {
        lease.leave(candidateKey);
        return "left";
      }
      if (candidateKey.lost !== undefined) throw candidateKey.lost;
      if (won && candidateKey.token !== undefined)
        return new EtcdHold(
          this.#client,
          candidateKey,
          candidateKey.token,
          lease,
          attemptMs,
          (heir, release) => this.#handOver(candidateKey, heir, release),
        );
      await this.#withdraw(candidateKey, lease);
      return null;
    } catch (error) {
      if (error instanceof EtcdError && error.kind === "lost") lease.notFound();
      await this.#withdraw(candidateKey, lease);
      throw error;
    }
  }

  /** Before the key is removed. A layout, or a role, that does not allow it: then anybody is next. */
  async #handOver(candidateKey: CandidateKey, heir: Heir, limits: CallLimits): Promise<void> {
    if (!this.#layout.honours.includes("heir") || candidateKey.identityKey === undefined) return;
    const { client, clock, keys } = { client: this.#client, clock: this.#clock, keys: this.#keys };
    await clearTheWay({ client, clock, keys, candidateKey }, heir, limits);
  }

  async #join(attempt: CampaignAttempt): Promise<Outcome> {
    const { candidateKey } = attempt;
    if (this.#identityKeys)
      candidateKey.identityKey = this.#keys.identity(candidateKey.election, candidateKey.lease);
    try {
      return await this.#layout.campaign(attempt);
    } catch (error) {
      if (candidateKey.identityKey === undefined || candidateKey.token !== undefined || !isForbidden(error))
        throw error;
      // Permission denied means nothing was written; retry without the optional identity key.
      candidateKey.identityKey = undefined;
      const won = await this.#layout.campaign(attempt);
      this.#identityKeys = false;
      return won;
    }
  }

  observe(election: string, options: ObserveOptions): AsyncIterable<Leader | null> {
    this.#assertOpen();
    const range = this.#layout.leaderRange(election);
    const identify = (kv: KeyValue, limits: CallLimits): Promise<string> =>
      this.#identify(election, kv, limits);
    return observeLeader({ client: this.#client, clock: this.#clock, range, identify }, options);
  }

  async release(claim: Claim, { signal }: CallOptions): Promise<"released" | "not-held"> {
    this.#assertOpen();
    const { election } = claim;
    const range = this.#layout.leaderRange(election);
    const identify = (kv: KeyValue, limits: CallLimits): Promise<string> =>
      this.#identify(election, kv, limits);
    return releaseClaim({ client: this.#client, range, identify }, claim, { signal, limitMs: CLAIM_MS });
  }

  async list({ signal }: CallOptions): Promise<Listing> {
    this.#assertOpen();
    const nameOf = (key: string): string | undefined => this.#layout.electionOf(key);
    return listElections(this.#client, this.#keys, nameOf, { signal, limitMs: LIST_MS });
  }

  /** Candidates' keys go with their leases: without a candidate nothing of an election is left. */
  async forget(election: string, { signal }: CallOptions): Promise<Forgotten> {
    this.#assertOpen();
    const range = { kind: "range", ...this.#layout.leaderRange(election), limit: 1, keysOnly: true } as const;
    const read = { when: [], then: [range], otherwise: [] };
    const answer = await this.#client.transaction(read, { signal, limitMs: CLAIM_MS });
    return answer.results[0]?.kvs.length === 0 ? "removed" : "in-use";
  }

  /** The candidate's id: known for our own candidates, read from the identity key for others; else the lease. */
  async #identify(election: string, kv: KeyValue, limits: CallLimits): Promise<string> {
    const fallback = this.#layout.leaderId(election, kv);
    const own = this.#leases.candidateOf(election, kv.lease, kv.createRevision);
    if (own !== undefined || !this.#identityKeys || kv.lease === 0n) return own ?? fallback;
    const key = this.#keys.identity(election, kv.lease);
    try {
      const read = { when: [], then: [{ kind: "range", key } as const], otherwise: [] };
      const identity = (await this.#client.transaction(read, limits)).results[0]?.kvs[0];
      return identity?.lease === kv.lease ? identity.value : fallback;
    } catch (error) {
      if (!isForbidden(error)) throw error;
      this.#identityKeys = false;
      return fallback;
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    for (const stop of this.#campaigns.keys()) stop.stop(closed());
    await Promise.allSettled(this.#campaigns.values()); // each removes its key first
    await this.#leases.close(CLOSE_MS);
    if (this.#ownsClient) await this.#client[Symbol.asyncDispose]();
  }

  /** Leaves the queue. If etcd cannot be reached now, the key is removed later, or expires with the lease. */
  async #withdraw(candidateKey: CandidateKey, lease: SharedLease): Promise<void> {
    const never = new StopSource();
    await limited(this.#clock, WITHDRAW_MS, never, "leaving the election", (signal) =>
      lease.remove(candidateKey, signal, WITHDRAW_MS),
    ).catch(() => {});
  }

  #assertOpen(): void {
    if (this.#closed !== undefined) throw closed();
  }
}

function isForbidden(error: unknown): boolean {
  return error instanceof EtcdError && error.code === "forbidden";
}

function closed(): ConclaveError {
  return new ConclaveError("state", "this etcd backend is closed; open a new one");
}
