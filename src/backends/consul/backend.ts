/** Elections on Consul. */
import type {
  BackendWithRecords,
  CallOptions,
  CampaignOptions,
  Candidacy,
  Claim,
  Forgotten,
  Guarantees,
  Hold,
  Leader,
  Listing,
  ObserveOptions,
} from "../../seam/backend.js";
import type { Clock } from "../../seam/clock.js";
import type { RecordStore } from "../../seam/table.js";
import { systemClock } from "../../kit/clock.js";
import { listing, MOST_LISTED } from "../../kit/listing.js";
import { bounded, onAbort } from "../../kit/wait.js";
import type { CallLimits, ConsulClient } from "./client.js";
import type { CandidateLock } from "./candidate-lock.js";
import { ConsulHold } from "./hold.js";
import { assertLock, type ConsulLayout, Keys, LOCK_FLAG } from "./keys.js";
import { observeLeader } from "./observe.js";
import { ConsulRecords } from "./records.js";
import { releaseClaim } from "./release-claim.js";
import { closed, SessionPool } from "./session-pool.js";
import type { SharedSession } from "./shared-session.js";
import { takeLock } from "./take-lock.js";
import { Watches } from "./watches.js";

export interface ConsulBackendParts {
  readonly client: ConsulClient;
  /** Whether closing the backend closes the client. */
  readonly ownsClient: boolean;
  /** Put before every key; empty, or ending with a slash. */
  readonly root?: string | undefined;
  readonly layout?: ConsulLayout | undefined;
  readonly lockDelayMs?: number | undefined;
  readonly minTtlMs?: number | undefined;
  readonly clock?: Clock | undefined;
}

/** Consul's `session_ttl_min`. */
const SHORTEST_TTL_MS = 10_000;
/** How long a cancelled campaign waits for its lock to be released; after that the release goes on by itself. */
const WITHDRAW_MS = 500;
const CLOSE_MS = 2_000;
/** Longest a request for a claim or a listing may take; the caller's signal may end it sooner. */
const LIMIT_MS = 5_000;

export class ConsulBackend implements BackendWithRecords {
  readonly name = "consul";
  readonly guarantees: Guarantees;
  readonly timing: { readonly ttlMs: number };
  readonly records: RecordStore;
  readonly #client: ConsulClient;
  readonly #ownsClient: boolean;
  readonly #clock: Clock;
  readonly #keys: Keys;
  readonly #layout: ConsulLayout;
  readonly #watches: Watches;
  readonly #sessions: SessionPool;
  /** Under way, each with what stops it. */
  readonly #campaigns = new Map<AbortController, Promise<unknown>>();
  #closed: Promise<void> | undefined;

  constructor(parts: ConsulBackendParts) {
    const { client, root = "", layout = "lock", lockDelayMs } = parts;
    const minMs = parts.minTtlMs ?? SHORTEST_TTL_MS;
    this.#client = client;
    this.#ownsClient = parts.ownsClient;
    this.#clock = parts.clock ?? systemClock;
    this.#layout = layout;
    this.#keys = new Keys(root, layout);
    this.#watches = new Watches({
      ...{ client, clock: this.#clock, root, waitMs: minMs },
      wentBack: () => this.#sessions.giveUp(),
    });
    this.#sessions = new SessionPool({ client, clock: this.#clock, watches: this.#watches, lockDelayMs });
    this.records = new ConsulRecords(client, this.#clock, this.#watches, this.#keys);
    this.timing = { ttlMs: Math.max(SHORTEST_TTL_MS, minMs) };
    this.guarantees = {
      ...{ exclusion: "linearizable", expiry: "store", token: "revision", succession: "unordered" },
      ttl: { minMs, stepMs: 1_000 },
    };
  }

  async campaign(candidacy: Candidacy, options: CampaignOptions): Promise<Hold | null> {
    this.#assertOpen();
    const { signal } = options;
    const stop = new AbortController();
    const unlink = onAbort(signal, () => stop.abort(signal.reason));
    const campaign = this.#campaign(candidacy, { ...options, signal: stop.signal }).finally(() => {
      unlink();
      this.#campaigns.delete(stop);
    });
    this.#campaigns.set(stop, campaign);
    return campaign;
  }

  async #campaign(candidacy: Candidacy, { wait, signal, seen }: CampaignOptions): Promise<Hold | null> {
    const { election, candidate, ttlMs, value, attemptMs } = candidacy;
    const limits: CallLimits = { signal, limitMs: attemptMs };
    signal.throwIfAborted();
    const key = this.#keys.election(election);
    const { candidateLock, session } = await this.#sessions.enter(
      { election, candidate, key, ttlMs, seen },
      limits,
    );
    const [client, clock, watches] = [this.#client, this.#clock, this.#watches];
    try {
      const since = clock.wall();
      const isRelic = (id: string): boolean => this.#sessions.isRelic(id, election);
      const won = await takeLock({
        client,
        clock,
        watches,
        candidateLock,
        session,
        isRelic,
        value,
        wait,
        standBackMs: candidacy.standBackMs ?? (() => 0),
        limits,
      });
      signal.throwIfAborted();
      if (candidateLock.lost !== undefined) throw candidateLock.lost;
      if (won && candidateLock.token !== undefined)
        return new ConsulHold(client, candidateLock, session, {
          token: candidateLock.token,
          since,
          attemptMs,
        });
      await this.#withdraw(candidateLock, session);
      return null;
    } catch (error) {
      await this.#withdraw(candidateLock, session);
      throw error;
    }
  }

  observe(election: string, options: ObserveOptions): AsyncIterable<Leader | null> {
    this.#assertOpen();
    const key = this.#keys.election(election);
    return observeLeader({ client: this.#client, clock: this.#clock, watches: this.#watches, key }, options);
  }

  async release(claim: Claim, { signal }: CallOptions): Promise<"released" | "not-held"> {
    this.#assertOpen();
    return releaseClaim(this.#client, this.#keys.election(claim.election), claim, {
      signal,
      limitMs: LIMIT_MS,
    });
  }

  /** By the names of keys; where any key may be an election's, by their flags, which takes all below the prefix. */
  async list({ signal }: CallOptions): Promise<Listing> {
    this.#assertOpen();
    const limits = { signal, limitMs: LIMIT_MS };
    const { root } = this.#keys;
    const found =
      this.#layout === "lock"
        ? await this.#client.keys(root, limits)
        : (await this.#client.read({ range: { prefix: root } }, limits)).kvs
            .filter(({ flags }) => flags === LOCK_FLAG)
            .map(({ key }) => key);
    const names = found.map((key) => this.#keys.nameOf(key)).filter((name) => name !== undefined);
    return listing(names.slice(0, MOST_LISTED), names.length <= MOST_LISTED);
  }

  /** The lock's key, if nobody holds it. Waiting candidates leave nothing in Consul: they make the key anew. */
  async forget(election: string, { signal }: CallOptions): Promise<Forgotten> {
    this.#assertOpen();
    const limits = { signal, limitMs: LIMIT_MS };
    const key = this.#keys.election(election);
    const kv = (await this.#client.read({ range: { key } }, limits)).kvs[0];
    if (kv === undefined) return "removed";
    assertLock(kv);
    if (kv.session !== undefined) return "in-use";
    const answer = await this.#client.transaction(
      [{ verb: "delete-cas", key, index: kv.modifyIndex }],
      limits,
    );
    return answer.committed ? "removed" : "in-use";
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    for (const stop of this.#campaigns.keys()) stop.abort(closed());
    await Promise.allSettled(this.#campaigns.values()); // each releases its lock first
    await this.#sessions.close(CLOSE_MS);
    this.#watches.close(closed());
    if (this.#ownsClient) await this.#client[Symbol.asyncDispose]();
  }

  /** If Consul cannot be asked now, the session sees to it later, or its end does. */
  async #withdraw(candidateLock: CandidateLock, session: SharedSession): Promise<void> {
    const never = new AbortController().signal;
    await bounded(this.#clock, WITHDRAW_MS, never, "leaving the election", (signal) =>
      session.vacate(candidateLock, signal, WITHDRAW_MS),
    ).catch(() => {});
  }

  #assertOpen(): void {
    if (this.#closed !== undefined) throw closed();
  }
}
