/**
 * One ZooKeeper session under the nodes of many elections: kept alive here, once
 * for all of them. It is extended by transactions of the ensemble, not by pings.
 */
import { readClocks } from "../../kit/clock.js";
import { ConclaveError, describe } from "../../kit/errors.js";
import type { Stop } from "../../kit/stop.js";
import { KeptSession } from "../../session/kept-session.js";
import { bounded } from "../../kit/wait.js";
import type { Extension } from "../../seam/backend.js";
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
  readonly retired: () => void;
}

export class SharedSession extends KeptSession<CandidateNode> {
  readonly id: bigint;
  readonly #session: ZooKeeperSession;
  readonly #orphans: OrphanedNodes;
  readonly #touches: Touches;
  #rounds = 0;
  #closed: Promise<void> = Promise.resolve();

  constructor(options: SharedSessionOptions) {
    const { session, clock, lagMs, asked, retired } = options;
    const ttlMs = session.timeoutMs;
    super({
      // A new session is a transaction of the ensemble: its timeout counts from there.
      ...{ clock, ttlMs, asked, retired, over: "the ZooKeeper session is over" },
      // What a renewal proves is up to a lag and a pause old; twice that and a failure must fit into the lease.
      renewMs: Math.max(50, (ttlMs - lagMs) / 4),
    });
    this.#session = session;
    this.id = session.id;
    this.#touches = new Touches(lagMs);
    const limits = { signal: this.closing.signal, limitMs: ttlMs / 4 };
    this.#orphans = new OrphanedNodes({ clock, limits, connected: () => session.connected(limits) });
    session.listen({
      connected: () => {
        void this.#orphans.sweep();
        for (const node of this.candidates) node.wake();
      },
      expired: () => void (this.ended || this.lose("its session is over")),
    });
  }

  /** Whether the extension is young enough to begin a term on. */
  get isFresh(): boolean {
    return this.ageMs < this.ttlMs * 0.6;
  }

  /** Whether another candidate may use it. */
  get serves(): boolean {
    return !this.ended && this.candidates.size < MOST_NODES;
  }

  add(request: NodeRequest): CandidateNode {
    const node = new CandidateNode(request);
    this.candidates.add(node);
    return node;
  }

  /** The connection in use, or the next one. */
  connected(limits: CallLimits): Promise<ZooKeeperConnection> {
    return this.#session.connected(limits);
  }

  /** A hold was given out on this node. */
  override handedOut(node: CandidateNode): void {
    super.handedOut(node);
    node.next = false;
  }

  /** A write that was sent then was answered: the ensemble's leader knew the session. */
  wrote(connection: ZooKeeperConnection, sentAt: number): void {
    this.extendTo({ asked: this.#touches.provenBy(connection, sentAt) });
  }

  /** An extension to begin a term on, by a renewal that found this node after the call. */
  async confirm(node: CandidateNode): Promise<Extension> {
    const calledAt = this.clock.now();
    for (let attempt = 0; attempt < 3; attempt++) {
      if (node.lost !== undefined) throw node.lost;
      if (node.checkedAt >= calledAt && this.isFresh) return this.extension;
      // After a pause nothing recent proves anything. A new connection does at once: its handshake goes to the leader.
      if (attempt > 0 && !this.isFresh) await this.#reconnect();
      await this.renew();
    }
    if (node.lost !== undefined) throw node.lost;
    return this.extension;
  }

  /** Takes the node out of the store. If that fails it is tried again as long as the session lives. */
  async vacate(node: CandidateNode, signal: Stop, limitMs: number): Promise<void> {
    if (node.lost !== undefined || (node.state === "left" && !this.#orphans.has(node))) return;
    try {
      const limits = { signal, limitMs };
      const settled = !node.sent || (await removeNode(await this.connected(limits), node, limits));
      if (settled) this.forget(node);
      else this.orphan(node);
    } catch (error) {
      this.orphan(node);
      throw error;
    }
  }

  /** Ends it; the ensemble then deletes its nodes, unless somebody may still count on leading by one. */
  close(limitMs: number): Promise<void> {
    if (this.ended) return this.#closed;
    const mayLead = this.mayLead || this.#orphans.waiting;
    this.end();
    this.tellLost("its session was given up");
    if (mayLead) this.#session.abandon();
    else this.#closed = this.#closeSession(limitMs);
    this.retired();
    return this.#closed;
  }

  async #closeSession(limitMs: number): Promise<void> {
    const never = new AbortController().signal;
    await this.#session.close({ signal: never, limitMs }).catch(() => {}); // it runs out by itself
  }

  /** Keeps the session alive. Without a node whose turn is or may be near, a ping does: nobody counts on more. */
  protected override async due(): Promise<number> {
    const sentAt = this.clock.now();
    if ([...this.candidates].some((node) => node.state === "held" || node.next)) await this.renew();
    else
      await this.#attempt("a ping", (connection, limits) =>
        connection.ping({ ...limits, limitMs: this.ttlMs / 4 }),
      );
    void this.#orphans.sweep();
    return sentAt;
  }

  protected override async extend(): Promise<Extension> {
    await this.#attempt("renewing the ZooKeeper session", (connection, limits) =>
      this.#check(connection, limits),
    );
    return this.extension;
  }

  async #check(connection: ZooKeeperConnection, limits: CallLimits): Promise<void> {
    const sentAt = this.clock.now();
    const proven = this.#touches.provenBy(connection, sentAt);
    const nodes = this.#toCheck();
    if (nodes.length === 0) return connection.ping(limits);
    await checkNodes(connection, nodes, { limits, missing: (node, why) => this.#missing(node, why) });
    if (this.ended) throw new ConclaveError("unavailable", "the ZooKeeper session is over");
    for (const node of nodes) node.checkedAt = sentAt;
    this.extendTo({ asked: proven });
  }

  /** All that lead or may soon, and some of the others. */
  #toCheck(): CandidateNode[] {
    const known = [...this.candidates].filter(({ path }) => path !== undefined);
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
    const { signal } = this.closing;
    await bounded(this.clock, this.ttlMs / 4, signal, what, async (stop) => {
      const connection = await this.#session.connected({ signal: stop, limitMs: this.ttlMs / 4 });
      const asked = readClocks(this.clock);
      try {
        await ask(connection, { signal: stop, limitMs: this.ttlMs / 6 });
      } catch (error) {
        if (!this.ended && isTimeout(error)) connection.drop(describe(error));
        throw error;
      }
      this.#touches.answered(connection, asked, this.clock.now());
    });
  }

  async #reconnect(): Promise<void> {
    const limits = { signal: this.closing.signal, limitMs: this.ttlMs / 4 };
    (await this.#session.connected(limits)).drop("its session must be extended at once");
    await this.#session.connected(limits);
  }

  #missing(node: CandidateNode, why: string): void {
    this.candidates.delete(node);
    node.lose(why);
  }

  /** The node is nobody's; it must go, sooner or later. */
  protected override orphan(node: CandidateNode, from?: number): void {
    if (node.state === "left") return;
    this.forget(node);
    if (node.lost === undefined) this.#orphans.add(node, from);
  }

  /** Its node is certainly not in the store any more. */
  forget(node: CandidateNode): void {
    node.leave();
    this.candidates.delete(node);
    this.#orphans.delete(node);
  }

  protected override end(): void {
    super.end();
    this.#orphans.close();
  }
}

function isTimeout(error: unknown): boolean {
  return error instanceof ConclaveError && error.code === "timeout";
}
