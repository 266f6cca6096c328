/**
 * One ZooKeeper session under the nodes of many elections: kept alive here, once
 * for all of them. It is extended by transactions of the ensemble, not by pings.
 */
import { readClocks } from "../../kit/clock.js";
import { ConclaveError, describe } from "../../kit/errors.js";
import { RenewalLoop } from "../../kit/renewal.js";
import type { Stop } from "../../kit/stop.js";
import { SessionFollowers } from "../../session/followers.js";
import { bounded, sharedController } from "../../kit/wait.js";
import type { Extension, Session, SessionFollower } from "../../seam/backend.js";
import type { Clock, Reading } from "../../seam/clock.js";
import { CandidateNode, type NodeRequest } from "./candidate-node.js";
import { checkNodes } from "./check-nodes.js";
import type { CallLimits, ZooKeeperConnection, ZooKeeperSession } from "./client.js";
import { OrphanedNodes, removeNode } from "./orphaned-nodes.js";
import { Touches } from "./touches.js";

/** The end of a session names all its nodes in one transaction, which must fit into ZooKeeper's 1 MiB. */
const MOST_NODES = 4_000;
/** Waiting candidates whose nodes are looked at in one renewal, in turn. */
const WAITING_CHECKED = 100;

export interface SharedSessionOptions {
  readonly session: ZooKeeperSession;
  readonly clock: Clock;
  /** Longest time between a request to a server and the ensemble's leader learning of it. */
  readonly lagMs: number;
  /** The clocks just before the session was asked for. */
  readonly asked: Reading;
  readonly retired: (session: SharedSession) => void;
}

export class SharedSession implements Session {
  readonly id: bigint;
  /** What the server granted. */
  readonly ttlMs: number;
  readonly #session: ZooKeeperSession;
  readonly #clock: Clock;
  readonly #retired: (session: SharedSession) => void;
  readonly #closing = sharedController();
  readonly #nodes = new Set<CandidateNode>();
  readonly #orphans: OrphanedNodes;
  readonly #touches: Touches;
  readonly #renewals: RenewalLoop<number>;
  readonly #followers: SessionFollowers<CandidateNode>;
  #extension: Extension;
  #renewing: Promise<Extension> | undefined;
  #rounds = 0;
  #ended: "lost" | "retired" | undefined;
  #closed: Promise<void> = Promise.resolve();

  constructor(options: SharedSessionOptions) {
    const { session, clock, lagMs } = options;
    this.#session = session;
    this.#clock = clock;
    this.#retired = options.retired;
    this.id = session.id;
    this.ttlMs = session.timeoutMs;
    // A new session is a transaction of the ensemble: its timeout counts from there.
    this.#extension = { asked: options.asked };
    this.#touches = new Touches(lagMs);
    const limits = { signal: this.#closing.signal, limitMs: this.ttlMs / 4 };
    this.#orphans = new OrphanedNodes({ clock, limits, connected: () => session.connected(limits) });
    this.#followers = new SessionFollowers({
      ...{ clock, ttlMs: this.ttlMs },
      candidates: () => this.#nodes,
      expired: (node) => this.#orphan(node),
    });
    this.#renewals = new RenewalLoop({
      clock,
      // What a renewal proves is up to a lag and a pause old; twice that and a failure must fit into the lease.
      renewMs: Math.max(50, (this.ttlMs - lagMs) / 4),
      attemptMs: this.ttlMs / 4,
      leftMs: () => Infinity,
      ask: () => this.#due(),
      answered: (sentAt) => sentAt,
      failed: () => !this.ended,
    });
    session.listen({
      connected: () => {
        void this.#orphans.sweep();
        for (const node of this.#nodes) node.wake();
      },
      expired: () => this.#lose("its session is over"),
    });
    this.#renewals.start(options.asked.now);
  }

  get extension(): Extension {
    return this.#extension;
  }

  get ended(): boolean {
    return this.#ended !== undefined;
  }

  get ageMs(): number {
    return this.#clock.now() - this.#extension.asked.now;
  }

  /** Whether the extension is young enough to begin a term on. */
  get isFresh(): boolean {
    return this.ageMs < this.ttlMs * 0.6;
  }

  /** Whether another candidate may use it. */
  get serves(): boolean {
    return !this.ended && this.#nodes.size < MOST_NODES;
  }

  add(request: NodeRequest): CandidateNode {
    const node = new CandidateNode(request);
    this.#nodes.add(node);
    return node;
  }

  /** The connection in use, or the next one. */
  connected(limits: CallLimits): Promise<ZooKeeperConnection> {
    return this.#session.connected(limits);
  }

  follow(follower: SessionFollower): () => void {
    return this.#followers.follow(follower);
  }

  /** A hold was given out on this node. */
  handedOut(node: CandidateNode): void {
    node.state = "held";
    node.next = false;
    node.handedOut = this.#extension.asked.now;
    this.#followers.handedOut();
  }

  /** A write that was sent at this instant was answered: the ensemble's leader knew the session. */
  wrote(connection: ZooKeeperConnection, sentAt: number): void {
    const asked = this.#touches.provenBy(connection, sentAt);
    if (asked.now > this.#extension.asked.now) this.#extension = { asked };
  }

  /** One renewal now, shared with everybody who asks while it is under way. */
  renew(): Promise<Extension> {
    this.#renewing ??= this.#renew().finally(() => {
      this.#renewing = undefined;
    });
    return this.#renewing;
  }

  /** An extension to begin a term on, by a renewal that found this node after the call. */
  async confirm(node: CandidateNode): Promise<Extension> {
    const calledAt = this.#clock.now();
    for (let attempt = 0; attempt < 3; attempt++) {
      if (node.lost !== undefined) throw node.lost;
      if (node.checkedAt >= calledAt && this.isFresh) return this.#extension;
      // After a pause nothing recent proves anything. A new connection does at once: its handshake goes to the leader.
      if (attempt > 0 && !this.isFresh) await this.#reconnect();
      await this.renew();
    }
    if (node.lost !== undefined) throw node.lost;
    return this.#extension;
  }

  /** Takes the node out of the store. If that fails it is tried again as long as the session lives. */
  async vacate(node: CandidateNode, signal: Stop, limitMs: number): Promise<void> {
    if (node.lost !== undefined || (node.state === "left" && !this.#orphans.has(node))) return;
    try {
      const limits = { signal, limitMs };
      const settled = !node.sent || (await removeNode(await this.connected(limits), node, limits));
      if (settled) this.#forget(node);
      else this.#orphan(node);
    } catch (error) {
      this.#orphan(node);
      throw error;
    }
  }

  /** The term on this node is over, and is not released: its node is removed when its lease would have ended. */
  abandon(node: CandidateNode, at: number): void {
    if (node.state === "held") this.#orphan(node, at);
  }

  /** Ends it; the ensemble then deletes its nodes, unless somebody may still count on leading by one. */
  close(limitMs: number): Promise<void> {
    if (this.#ended !== undefined) return this.#closed;
    const live = this.ageMs < this.ttlMs && [...this.#nodes].some(({ state }) => state === "held");
    const counted = live || this.#orphans.waiting;
    this.#end("retired");
    this.#tellLost("its session was given up");
    if (counted) this.#session.abandon();
    else this.#closed = this.#closeSession(limitMs);
    this.#retired(this);
    return this.#closed;
  }

  async #closeSession(limitMs: number): Promise<void> {
    const never = new AbortController().signal;
    await this.#session.close({ signal: never, limitMs }).catch(() => {}); // it runs out by itself
  }

  /** Keeps the session alive. Without a node whose turn is or may be near, a ping does: nobody counts on more. */
  async #due(): Promise<number> {
    const sentAt = this.#clock.now();
    if ([...this.#nodes].some((node) => node.state === "held" || node.next)) await this.renew();
    else
      await this.#attempt("a ping", (connection, limits) =>
        connection.ping({ ...limits, limitMs: this.ttlMs / 4 }),
      );
    void this.#orphans.sweep();
    return sentAt;
  }

  async #renew(): Promise<Extension> {
    const startedAt = this.#clock.now();
    try {
      await this.#attempt("renewing the ZooKeeper session", (connection, limits) =>
        this.#check(connection, limits),
      );
      this.#renewals.start(startedAt);
      this.#followers.attempted({ latencyMs: this.#clock.now() - startedAt });
      return this.#extension;
    } catch (error) {
      this.#followers.attempted({ latencyMs: this.#clock.now() - startedAt, error });
      throw error;
    }
  }

  async #check(connection: ZooKeeperConnection, limits: CallLimits): Promise<void> {
    const sentAt = this.#clock.now();
    const proven = this.#touches.provenBy(connection, sentAt);
    const nodes = this.#toCheck();
    if (nodes.length === 0) return connection.ping(limits);
    await checkNodes(connection, nodes, { limits, missing: (node, why) => this.#missing(node, why) });
    if (this.ended) throw new ConclaveError("unavailable", "the ZooKeeper session is over");
    for (const node of nodes) node.checkedAt = sentAt;
    if (proven.now > this.#extension.asked.now) this.#extension = { asked: proven };
  }

  /** All that lead or may soon, and some of the others. */
  #toCheck(): CandidateNode[] {
    const known = [...this.#nodes].filter(({ path }) => path !== undefined);
    const urgent = known.filter((node) => node.state === "held" || node.next);
    const waiting = known.filter((node) => node.state !== "held" && !node.next);
    const from = (this.#rounds++ * WAITING_CHECKED) % Math.max(1, waiting.length);
    return [...urgent, ...waiting.slice(from, from + WAITING_CHECKED)];
  }

  /**
   * One request that keeps the session alive. If it is not answered the connection
   * is given up, early enough for another server: this one may be cut off from its
   * ensemble.
   */
  async #attempt(
    what: string,
    ask: (connection: ZooKeeperConnection, limits: CallLimits) => Promise<void>,
  ): Promise<void> {
    const { signal } = this.#closing;
    await bounded(this.#clock, this.ttlMs / 4, signal, what, async (stop) => {
      const connection = await this.#session.connected({ signal: stop, limitMs: this.ttlMs / 4 });
      const asked = readClocks(this.#clock);
      try {
        await ask(connection, { signal: stop, limitMs: this.ttlMs / 6 });
      } catch (error) {
        if (!this.ended && isTimeout(error)) connection.drop(describe(error));
        throw error;
      }
      this.#touches.answered(connection, asked, this.#clock.now());
    });
  }

  async #reconnect(): Promise<void> {
    const limits = { signal: this.#closing.signal, limitMs: this.ttlMs / 4 };
    (await this.#session.connected(limits)).drop("its session must be extended at once");
    await this.#session.connected(limits);
  }

  #missing(node: CandidateNode, why: string): void {
    this.#nodes.delete(node);
    node.lose(why);
  }

  /** The node is nobody's; it must go, sooner or later. */
  #orphan(node: CandidateNode, from?: number): void {
    if (node.state === "left") return;
    this.#forget(node);
    if (node.lost === undefined) this.#orphans.add(node, from);
  }

  #forget(node: CandidateNode): void {
    node.leave();
    this.#nodes.delete(node);
    this.#orphans.delete(node);
  }

  #lose(why: string): void {
    if (this.ended) return;
    this.#end("lost");
    this.#retired(this);
    this.#tellLost(why);
  }

  /** First those who follow: none of their terms is held any more. */
  #tellLost(why: string): void {
    this.#followers.lost();
    for (const node of this.#nodes) node.lose(why);
    this.#nodes.clear();
  }

  #end(how: "lost" | "retired"): void {
    this.#ended = how;
    this.#renewals.stop();
    this.#followers.end();
    this.#orphans.close();
    this.#closing.abort(new ConclaveError("unavailable", "the ZooKeeper session is over"));
  }
}

function isTimeout(error: unknown): boolean {
  return error instanceof ConclaveError && error.code === "timeout";
}
