/** Elections on ZooKeeper. */
import { systemClock } from "../../kit/clock.js";
import { bounded, onAbort } from "../../kit/wait.js";
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
import type { CandidateNode } from "./candidate-node.js";
import type { CallLimits, ZooKeeperClient, ZooKeeperConnection } from "./client.js";
import { closedBackend } from "./closed.js";
import { ZooKeeperHold } from "./hold.js";
import { type Layout, layoutOf, type ZooKeeperLayout } from "./layouts.js";
import { ERRNO, isErrno } from "./client/errors.js";
import { listElections } from "./list.js";
import { type Floor, observeLeader } from "./observe.js";
import { Paths } from "./paths.js";
import { leadQueue } from "./queue.js";
import { ZooKeeperRecords } from "./records.js";
import { releaseClaim } from "./release-claim.js";
import { SessionPool } from "./session-pool.js";
import type { SharedSession } from "./shared-session.js";
import type { Stance } from "./stand-aside.js";

export interface ZooKeeperBackendParts {
  readonly client: ZooKeeperClient;
  readonly root: string;
  readonly layout: ZooKeeperLayout;
  readonly tickMs: number;
  readonly warn: (message: string) => void;
  readonly clock?: Clock | undefined;
}

/** As kazoo has it; within the bounds of a server with its usual settings. */
const TTL_MS = 10_000;
/** Shortest session a server grants, in its ticks. */
const LEAST_TICKS = 2;
/** The leader learns of sessions every half tick; the other quarter is for a leader that is late. */
const LAG_TICKS = 0.75;
/** How long a cancelled campaign waits for its node to be removed; after that the removal goes on by itself. */
const WITHDRAW_MS = 500;
const CLOSE_MS = 2_000;
/** Longest a request for a claim or a listing may take; the caller's signal may end it sooner. */
const CALL_MS = 5_000;
/** Elections whose newest leader is remembered for observers. */
const MOST_FLOORS = 10_000;

export class ZooKeeperBackend implements BackendWithRecords {
  readonly name = "zookeeper";
  readonly guarantees: Guarantees;
  readonly timing = { ttlMs: TTL_MS };
  readonly records: RecordStore;
  readonly #client: ZooKeeperClient;
  readonly #clock: Clock;
  readonly #layout: Layout;
  readonly #paths: Paths;
  readonly #sessions: SessionPool;
  readonly #floors = new Map<string, Floor>();
  /** Under way, each with what stops it. */
  readonly #campaigns = new Map<AbortController, Promise<unknown>>();
  #closed: Promise<void> | undefined;

  constructor(parts: ZooKeeperBackendParts) {
    const { client, tickMs, warn } = parts;
    const clock = parts.clock ?? systemClock;
    this.#client = client;
    this.#clock = clock;
    this.#layout = layoutOf(parts.layout);
    this.#paths = new Paths(parts.root);
    this.#sessions = new SessionPool({
      ...{ client, clock, lagMs: tickMs * LAG_TICKS, usualTtlMs: TTL_MS },
      clamped: (askedMs, grantedMs) =>
        warn(
          `ZooKeeper grants a session of ${grantedMs} ms instead of ${askedMs} ms: leases last that long. ` +
            `The servers' minSessionTimeout and maxSessionTimeout (2 and 20 ticks) set the bounds; choose a ttl between them`,
        ),
    });
    this.records = new ZooKeeperRecords(this.#paths, (limits) => this.#connected(limits));
    this.guarantees = {
      exclusion: "linearizable",
      expiry: "store",
      token: "revision",
      succession: "fifo",
      ttl: { minMs: LEAST_TICKS * tickMs, stepMs: 1 },
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

  async #campaign(candidacy: Candidacy, options: CampaignOptions): Promise<Hold | null> {
    const stance: Stance = { vacancy: undefined };
    for (;;) {
      const outcome = await this.#attempt(candidacy, options, stance);
      if (outcome !== "left") return outcome;
    }
  }

  /** `"left"`: it gave way to others, and has to join the queue again. */
  async #attempt(
    candidacy: Candidacy,
    { wait, signal, seen }: CampaignOptions,
    stance: Stance,
  ): Promise<Hold | null | "left"> {
    const { election, candidate, ttlMs, value, attemptMs } = candidacy;
    const standBackMs = candidacy.standBackMs ?? (() => 0);
    const limits: CallLimits = { signal, limitMs: attemptMs };
    const parent = this.#paths.election(election);
    const shared = await this.#sessions.session(ttlMs, limits);
    const uuid = `${this.#clock.uniqueId()}${this.#clock.uniqueId()}`.slice(0, 32).padEnd(32, "0");
    const node = shared.add({ election, candidate, parent, prefix: this.#layout.prefix(uuid), seen });
    const { layout, paths, clock } = { layout: this.#layout, paths: this.#paths, clock: this.#clock };
    try {
      const handOver = { clock, shared, node, layout, paths };
      const won = await leadQueue({ ...handOver, value, wait, limits, standBackMs, stance });
      if (won === "left") {
        shared.forget(node);
        return "left";
      }
      if (node.lost !== undefined) throw node.lost;
      if (won && node.token !== undefined) return new ZooKeeperHold(handOver, node.token, attemptMs);
      await this.#withdraw(node, shared);
      return null;
    } catch (error) {
      await this.#withdraw(node, shared);
      throw error;
    }
  }

  observe(election: string, options: ObserveOptions): AsyncIterable<Leader | null> {
    this.#assertOpen();
    return observeLeader(
      {
        ...{ clock: this.#clock, layout: this.#layout, paths: this.#paths },
        ...{ election, parent: this.#paths.election(election) },
        floor: this.#floorOf(election),
        connected: (limits) => this.#connected(limits),
      },
      options,
    );
  }

  async release(claim: Claim, { signal }: CallOptions): Promise<"released" | "not-held"> {
    this.#assertOpen();
    const limits = { signal, limitMs: CALL_MS };
    const connection = await this.#connected(limits);
    return releaseClaim(connection, this.#layout, this.#paths.election(claim.election), claim, limits);
  }

  async list({ signal }: CallOptions): Promise<Listing> {
    this.#assertOpen();
    const limits = { signal, limitMs: CALL_MS };
    return listElections(await this.#connected(limits), this.#paths, this.#layout, limits);
  }

  /** The election's own node, if there is no candidate below it. Tokens are numbers of transactions: they go on rising. */
  async forget(election: string, { signal }: CallOptions): Promise<Forgotten> {
    this.#assertOpen();
    const limits = { signal, limitMs: CALL_MS };
    const connection = await this.#connected(limits);
    const parent = this.#paths.election(election);
    const children = await connection.getChildren(parent, limits);
    if (children?.some((child) => this.#layout.pattern.test(child)) === true) return "in-use";
    try {
      await connection.remove(parent, limits);
      return "removed";
    } catch (error) {
      // Elections below this name, or a candidate that has just come.
      if (isErrno(error, ERRNO.notEmpty)) return children?.length === 0 ? "in-use" : "kept";
      throw error;
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    for (const stop of this.#campaigns.keys()) stop.abort(closedBackend());
    await Promise.allSettled(this.#campaigns.values()); // each takes its node away first
    await this.#sessions.close(CLOSE_MS);
    await this.#client[Symbol.asyncDispose]();
  }

  async #connected(limits: CallLimits): Promise<ZooKeeperConnection> {
    this.#assertOpen();
    return (await this.#sessions.any(limits)).connected(limits);
  }

  /** Leaves the queue; if ZooKeeper cannot be asked now, the session sees to it later, or its end does. */
  async #withdraw(node: CandidateNode, shared: SharedSession): Promise<void> {
    const never = new AbortController().signal;
    await bounded(this.#clock, WITHDRAW_MS, never, "leaving the election", (signal) =>
      shared.vacate(node, signal, WITHDRAW_MS),
    ).catch(() => {});
  }

  #floorOf(election: string): Floor {
    const known = this.#floors.get(election);
    if (known !== undefined) return known;
    const [oldest] = this.#floors.keys();
    if (this.#floors.size >= MOST_FLOORS && oldest !== undefined) this.#floors.delete(oldest);
    const floor = { token: 0n, history: undefined };
    this.#floors.set(election, floor);
    return floor;
  }

  #assertOpen(): void {
    if (this.#closed !== undefined) throw closedBackend();
  }
}
