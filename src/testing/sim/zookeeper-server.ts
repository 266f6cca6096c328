/**
 * A model of a ZooKeeper ensemble behind the ZooKeeper backend's client interface:
 * nodes with czxid and sequence numbers, sessions that end by the *leader's*
 * clock, and a follower for each machine between it and that leader.
 *
 * A follower tells the leader of the sessions it has heard of every half tick.
 * One that is cut off answers pings, and reads what it last knew; writes through
 * it are not answered, and the leader hears of its sessions no more.
 */
import type { Change, CreateMode, FailedCheck, NodeData, Stat } from "../../backends/zookeeper/client.js";
import { ERRNO, serverError } from "../../backends/zookeeper/client/errors.js";
import type { Oscillator } from "./oscillator.js";
import type { Random } from "./random.js";
import type { Scheduler } from "./scheduler.js";
import { childrenOf, errnoOf, parentOf, statOf } from "./zookeeper-nodes.js";
import type { ZNode } from "./zookeeper-nodes.js";
import { OneTimeWatches } from "./zookeeper-watches.js";
import type { Wake } from "./zookeeper-watches.js";

export const SIM_TICK_MS = 500;

/** Share of the empty containers that the cleaner finds at once. */
const CLEANED = 0.5;

/** What a request that is never answered returns. */
export const UNANSWERED = Symbol("unanswered");

interface SimSessionState {
  readonly id: bigint;
  readonly timeoutMs: number;
  expiresAt: number;
  /** The connection that may use it: the newest one. */
  connection: object;
  /** The machine it is connected from. */
  machine: string;
  /** A follower has heard of it since it last told the leader. */
  heard: boolean;
}

export interface ZooKeeperServerOptions {
  readonly scheduler: Pick<Scheduler, "now" | "quietly">;
  readonly oscillator: Pick<Oscillator, "mono" | "whenMono">;
  readonly random: Random;
  readonly onChange?: (kind: "put" | "delete", path: string, node: { data: string; czxid: bigint }) => void;
}

export class SimZooKeeper {
  readonly #options: ZooKeeperServerOptions;
  #nodes = new Map<string, ZNode>();
  readonly #sessions = new Map<bigint, SimSessionState>();
  /** Until when the follower of a machine is cut off, and what it knew. */
  readonly #cutOff = new Map<string, { until: number; nodes: Map<string, ZNode> }>();
  /** Those of followers that are cut off stay silent. */
  readonly #watches = new OneTimeWatches((machine) => this.#isCutOff(machine));
  #zxid = 1n;

  constructor(options: ZooKeeperServerOptions) {
    this.#options = options;
  }

  /** Whether the node that was created by this transaction is still there. */
  has(czxid: bigint): boolean {
    for (const node of this.#nodes.values()) if (node.czxid === czxid) return true;
    return false;
  }

  /** The follower of this machine loses its leader until then. */
  cutOff(machine: string, until: number): void {
    this.#cutOff.set(machine, { until, nodes: new Map(this.#nodes) });
  }

  /** The ensemble changed its leader: sessions are given their full time again. */
  failOver(): void {
    for (const session of this.#sessions.values()) this.#extend(session);
  }

  open(machine: string, connection: object, timeoutMs: number): SimSessionState | typeof UNANSWERED {
    if (this.#isCutOff(machine)) return UNANSWERED;
    const id = BigInt(`0x${this.#options.random.hex(14)}`) + 1n;
    const session = { id, timeoutMs, expiresAt: 0, connection, machine, heard: false };
    this.#sessions.set(id, session);
    this.#extend(session);
    this.#await(session);
    return session;
  }

  /** `false`: the session is over. The follower asks the leader. */
  reopen(machine: string, connection: object, id: bigint): boolean | typeof UNANSWERED {
    if (this.#isCutOff(machine)) return UNANSWERED;
    const session = this.#sessions.get(id);
    if (session === undefined) return false;
    Object.assign(session, { connection, machine });
    this.#extend(session);
    return true;
  }

  close(id: bigint, connection: object): typeof UNANSWERED | undefined {
    const session = this.#write(id, connection);
    if (session === UNANSWERED) return UNANSWERED;
    this.#end(session);
    return undefined;
  }

  ping(id: bigint, connection: object): void {
    this.#hear(id, connection);
  }

  read(id: bigint, connection: object, path: string, wake?: Wake): NodeData | null {
    const [nodes, machine] = this.#view(id, connection);
    const node = nodes.get(path);
    if (node !== undefined && wake !== undefined) this.#watches.add(`data ${path}`, wake, machine);
    return node === undefined ? null : { data: node.data, stat: statOf(nodes, path, node) };
  }

  exists(id: bigint, connection: object, path: string, wake?: Wake): Stat | null {
    const [nodes, machine] = this.#view(id, connection);
    const node = nodes.get(path);
    if (wake !== undefined) this.#watches.add(`data ${path}`, wake, machine);
    return node === undefined ? null : statOf(nodes, path, node);
  }

  children(id: bigint, connection: object, path: string, wake?: Wake): string[] | null {
    const [nodes, machine] = this.#view(id, connection);
    if (!nodes.has(path) && path !== "/") return null;
    if (wake !== undefined) this.#watches.add(`children ${path}`, wake, machine);
    return childrenOf(nodes, path);
  }

  create(
    id: bigint,
    connection: object,
    path: string,
    data: string,
    mode: CreateMode,
  ): { path: string; stat: Stat } | typeof UNANSWERED {
    const session = this.#write(id, connection);
    if (session === UNANSWERED) return UNANSWERED;
    const above = parentOf(path);
    const parent = this.#nodes.get(above);
    if (parent === undefined && above !== "") throw refusal(ERRNO.noNode);
    const sequential = mode === "ephemeral-sequential";
    const name = sequential ? path + String(parent?.sequence ?? 0).padStart(10, "0") : path;
    if (this.#nodes.has(name)) throw refusal(ERRNO.nodeExists);
    const node = this.#put(name, data, sequential ? id : 0n, mode === "container");
    return { path: name, stat: statOf(this.#nodes, name, node) };
  }

  #put(path: string, data: string, owner: bigint, container: boolean): ZNode {
    const above = parentOf(path);
    const parent = this.#nodes.get(above);
    const zxid = ++this.#zxid;
    if (parent !== undefined) this.#nodes.set(above, { ...parent, sequence: parent.sequence + 1 });
    const node = { data, czxid: zxid, mzxid: zxid, version: 0, owner, sequence: 0, container };
    this.#nodes.set(path, node);
    this.#options.onChange?.("put", path, node);
    this.#watches.fire(`data ${path}`, `children ${above}`);
    return node;
  }

  remove(id: bigint, connection: object, path: string): boolean | typeof UNANSWERED {
    if (this.#write(id, connection) === UNANSWERED) return UNANSWERED;
    return this.#delete(path);
  }

  write(
    id: bigint,
    connection: object,
    path: string,
    data: string,
    version: number,
  ): Stat | typeof UNANSWERED {
    if (this.#write(id, connection) === UNANSWERED) return UNANSWERED;
    const node = this.#nodes.get(path);
    if (node === undefined) throw refusal(ERRNO.noNode);
    if (version !== -1 && version !== node.version) throw refusal(ERRNO.badVersion);
    const written = { ...node, data, mzxid: ++this.#zxid, version: node.version + 1 };
    this.#nodes.set(path, written);
    this.#options.onChange?.("put", path, written);
    this.#watches.fire(`data ${path}`);
    return statOf(this.#nodes, path, written);
  }

  check(
    id: bigint,
    connection: object,
    paths: readonly string[],
  ): FailedCheck | undefined | typeof UNANSWERED {
    if (this.#write(id, connection) === UNANSWERED) return UNANSWERED;
    this.#zxid++;
    const index = paths.findIndex((path) => !this.#nodes.has(path));
    return index < 0 ? undefined : { index, errno: ERRNO.noNode };
  }

  commit(
    id: bigint,
    connection: object,
    changes: readonly Change[],
  ): FailedCheck | undefined | typeof UNANSWERED {
    if (this.#write(id, connection) === UNANSWERED) return UNANSWERED;
    for (const [index, change] of changes.entries()) {
      const errno = errnoOf(this.#nodes, change);
      if (errno !== undefined) return { index, errno };
    }
    for (const change of changes) {
      if (change.kind === "remove") this.#delete(change.path);
      else if (change.kind === "create") this.#put(change.path, change.data, id, false);
      else if (change.kind === "write") this.write(id, connection, change.path, change.data, change.version);
    }
    return undefined;
  }

  #isCutOff(machine: string): boolean {
    return this.#options.scheduler.now < (this.#cutOff.get(machine)?.until ?? 0);
  }

  /** The follower has heard of the session. What a connection sent that was replaced is thrown away. */
  #hear(id: bigint, connection: object): SimSessionState | undefined {
    const session = this.#sessions.get(id);
    if (session !== undefined && session.connection !== connection) throw refusal(ERRNO.sessionMoved);
    if (session === undefined) return undefined;
    if (!session.heard) this.#tellLeader(session);
    session.heard = true;
    return session;
  }

  /** Every half tick, if the follower has a leader then. */
  #tellLeader(session: SimSessionState): void {
    const { scheduler, oscillator } = this.#options;
    const half = SIM_TICK_MS / 2;
    const next = (Math.floor(oscillator.mono(scheduler.now) / half) + 1) * half;
    scheduler.quietly(oscillator.whenMono(next), () => {
      session.heard = false;
      if (this.#sessions.get(session.id) === session && !this.#isCutOff(session.machine))
        this.#extend(session);
    });
  }

  #view(id: bigint, connection: object): [ReadonlyMap<string, ZNode>, string] {
    const session = this.#hear(id, connection);
    const machine = session?.machine ?? "";
    if (this.#isCutOff(machine)) return [this.#cutOff.get(machine)!.nodes, machine];
    if (session === undefined) throw refusal(ERRNO.sessionExpired);
    return [this.#nodes, machine];
  }

  #write(id: bigint, connection: object): SimSessionState | typeof UNANSWERED {
    const session = this.#hear(id, connection);
    if (session !== undefined && this.#isCutOff(session.machine)) return UNANSWERED;
    if (session === undefined) throw refusal(ERRNO.sessionExpired);
    return session;
  }

  #delete(path: string): boolean {
    const node = this.#nodes.get(path);
    if (node === undefined) return false;
    this.#zxid++;
    this.#nodes.delete(path);
    this.#options.onChange?.("delete", path, node);
    this.#watches.fire(`data ${path}`, `children ${path}`, `children ${parentOf(path)}`);
    this.#cleanUp(parentOf(path));
    return true;
  }

  /** The cleaner of containers looks once a minute: now and then it comes at once. */
  #cleanUp(path: string): void {
    const { random, scheduler } = this.#options;
    if (this.#nodes.get(path)?.container !== true || !random.chance(CLEANED)) return;
    scheduler.quietly(scheduler.now + 1, () => {
      if (this.#nodes.get(path)?.container === true && childrenOf(this.#nodes, path).length === 0)
        this.#delete(path);
    });
  }

  #end(session: SimSessionState): void {
    this.#sessions.delete(session.id);
    for (const [path, { owner }] of [...this.#nodes]) if (owner === session.id) this.#delete(path);
  }

  #extend(session: SimSessionState): void {
    const { oscillator, scheduler } = this.#options;
    session.expiresAt = oscillator.mono(scheduler.now) + session.timeoutMs;
  }

  /** Looks at a session when it may have run out: up to a tick late. */
  #await(session: SimSessionState): void {
    const { oscillator, scheduler, random } = this.#options;
    const time = oscillator.whenMono(session.expiresAt) + Math.max(0, random.next() - 0.3) * SIM_TICK_MS;
    scheduler.quietly(time, () => {
      if (this.#sessions.get(session.id) !== session) return;
      if (oscillator.mono(scheduler.now) >= session.expiresAt) this.#end(session);
      else this.#await(session);
    });
  }
}

function refusal(errno: number): Error {
  return serverError(errno, "a request", "the simulated ensemble");
}
