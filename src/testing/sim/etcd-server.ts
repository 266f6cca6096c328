/**
 * A model of etcd behind the etcd room's narrow door: keys with create and mod
 * revisions, guarded transactions, leases that end by the *server's* clock,
 * watches from a revision that are resumed after a break.
 *
 * Also modelled: a cluster leader that was deposed and does not know it, which
 * answers keep-alives although it can extend nothing. Its answers carry an old
 * raft term.
 */
import type {
  CallLimits,
  Comparison,
  EtcdClient,
  Header,
  KeyValue,
  LeaseLife,
  Operation,
  RangeRequest,
  Transaction,
  TransactionAnswer,
  WatchEvent,
} from "../../backends/etcd/client.js";
import { EtcdError } from "../../backends/etcd/client/errors.js";
import type { Clock } from "../../seam/clock.js";
import { limited } from "../../kit/wait.js";
import { EtcdLeases, SHORTEST_LEASE_S } from "./etcd-leases.js";
import type { KeptLease } from "./etcd-leases.js";
import { EtcdWatches, within } from "./etcd-watches.js";
import type { EtcdLink, Timeline } from "./etcd-watches.js";
import type { Oscillator } from "./oscillator.js";
import type { Random } from "./random.js";

/** What a backup keeps. */
interface Snapshot {
  readonly kvs: ReadonlyMap<string, KeyValue>;
  readonly leases: readonly KeptLease[];
  readonly revision: bigint;
}

/** etcd refuses transactions of more operations than this. */
const MOST_OPERATIONS = 128;
/**
 * Revisions rise by this much, and each life of the store, from one loss of
 * memory to the next, has a remainder of its own: no number is ever given twice,
 * so that a token says by itself which key it means.
 */
const STEP = 16n;

export interface EtcdServerOptions {
  readonly scheduler: Timeline;
  readonly oscillator: Pick<Oscillator, "mono" | "whenMono">;
  readonly random: Random;
  readonly onChange?: (event: WatchEvent) => void;
  /** A process has learnt that it has this lease. */
  readonly onGrant?: (link: EtcdLink, lease: bigint) => void;
  /** An answer has reached the process that asked. */
  readonly onAnswer?: (link: EtcdLink, asked: Transaction, answer: TransactionAnswer) => void;
}

/** Whether a candidate of this election wrote the key, in either layout. One transaction may create keys of many. */
export function isKeyOf(key: string, election: string): boolean {
  return key === election || key.startsWith(`${election}/`);
}

export class EtcdServer {
  /** Until then a deposed leader, which is sure it still leads, answers the keep-alives of these nodes. */
  readonly deposedFor = new Map<string, number>();
  readonly #options: EtcdServerOptions;
  readonly #kvs = new Map<string, KeyValue>();
  readonly #leases: EtcdLeases;
  readonly #watches: EtcdWatches;
  /** Keys that a loss of memory took away, by their create revision. */
  readonly #forgotten: KeyValue[] = [];
  /** How often it has lost its memory. */
  #losses = 0n;
  /** The highest revision there was before a loss of memory. */
  #highest = 0n;
  #revision = STEP;
  #raftTerm = 2n;
  /** A server that is restored restarts: its answers come on another connection. */
  #connection = {};

  constructor(options: EtcdServerOptions) {
    this.#options = options;
    this.#leases = new EtcdLeases(options, (id) => this.#revoke(id));
    this.#watches = new EtcdWatches(options.scheduler, options.random, () => this.#revision);
  }

  /** The client of one process. */
  connect(link: EtcdLink, clock: Clock): EtcdClient {
    const call = <T>(what: string, serve: () => T, limits: CallLimits): Promise<T> =>
      limited(clock, limits.limitMs, limits.signal, `${what} on etcd`, (signal) =>
        link.call(what, serve, signal),
      );
    return {
      transaction: async (transaction, limits) => {
        const answer = await call("transaction", () => this.#transact(transaction), limits);
        this.#options.onAnswer?.(link, transaction, answer);
        return answer;
      },
      leaseGrant: async (ttl, limits) => {
        const granted = await call("grant", () => this.#leases.grant(Number(ttl)), limits);
        this.#options.onGrant?.(link, granted.id);
        return granted;
      },
      leaseKeepAlive: (id, limits) => call("keep-alive", () => this.#keepAlive(id, link), limits),
      leaseRevoke: (id, limits) => call("revoke", () => this.#revoke(id), limits),
      watch: (request, sink) => this.#watches.watch(link, request, sink),
      [Symbol.asyncDispose]: async () => {},
    };
  }

  /** Whether the key that was created at this revision is still there. */
  has(createRevision: bigint, election: string): boolean {
    for (const kv of this.#kvs.values())
      if (kv.createRevision === createRevision && isKeyOf(kv.key, election)) return true;
    return false;
  }

  /** Whether the key that was created at this revision was lost with the store's memory. */
  forgot(createRevision: bigint, election: string): boolean {
    const lost = this.#forgotten.some(
      (kv) => kv.createRevision === createRevision && isKeyOf(kv.key, election),
    );
    return lost && !this.has(createRevision, election);
  }

  /** Whether this revision was given before the store last lost its memory. */
  isPast(revision: bigint): boolean {
    return revision % STEP !== this.#losses;
  }

  get revision(): bigint {
    return this.#revision;
  }

  backUp(): Snapshot {
    return { kvs: new Map(this.#kvs), leases: this.#leases.copy(), revision: this.#revision };
  }

  /** The store goes back to an earlier state; without one it has forgotten all. Leases are given their full time. */
  restore(
    { kvs, leases, revision }: Snapshot = { kvs: new Map(), leases: [], revision: 0n },
    afterwards = (revision / STEP) * STEP + STEP + this.#losses + 1n,
  ): void {
    const before = [...this.#kvs.values()];
    if (this.#revision > this.#highest) this.#highest = this.#revision;
    this.#losses++;
    this.#kvs.clear();
    for (const [key, kv] of kvs) this.#kvs.set(key, kv);
    this.#leases.restore(leases);
    this.#revision = afterwards;
    this.#raftTerm++;
    this.#connection = {};
    for (const kv of before)
      if (this.#kvs.get(kv.key)?.createRevision !== kv.createRevision) this.#forgotten.push(kv);
    this.#watches.forget();
  }

  /** An operator writes until the revision is above this one, or above all there have been. */
  raise(revision: bigint = this.#highest): void {
    while (this.#revision <= revision) this.#revision += STEP;
  }

  /** Removes a key by hand. */
  remove(key: string): void {
    const change = this.#delete(key, this.#revision + STEP);
    if (change !== null) this.#commit(this.#revision + STEP, [change]);
  }

  /** The cluster changed its leader. Leases are given their full time again, as etcd does. */
  failOver(): void {
    this.#raftTerm++;
    this.#leases.extendAll();
  }

  #header(): Header {
    return { revision: this.#revision, raftTerm: this.#raftTerm, connection: this.#connection };
  }

  #range(range: RangeRequest): KeyValue[] {
    const found: KeyValue[] = [];
    for (const kv of this.#kvs.values()) {
      if (!within(kv.key, range)) continue;
      if (range.maxCreateRevision !== undefined && kv.createRevision > range.maxCreateRevision) continue;
      found.push(range.keysOnly ? { ...kv, value: "" } : kv);
    }
    if (range.sort === undefined) found.sort((a, b) => (a.key < b.key ? -1 : 1));
    else {
      const sign = range.sort === "newest-first" ? -1 : 1;
      found.sort((a, b) => sign * (a.createRevision < b.createRevision ? -1 : 1));
    }
    return range.limit === undefined ? found : found.slice(0, range.limit);
  }

  #transact(transaction: Transaction): TransactionAnswer {
    const succeeded = transaction.when.every((comparison) => this.#holds(comparison));
    const changes: WatchEvent[] = [];
    // One transaction is one revision, however many keys it touches.
    const next = this.#revision + STEP;
    const operations = succeeded ? transaction.then : transaction.otherwise;
    if (Math.max(transaction.then.length, transaction.otherwise.length) > MOST_OPERATIONS)
      throw new EtcdError("permanent", "invalid", "etcdserver: too many operations in txn request");
    for (const operation of operations) this.#checkLease(operation);
    const results = operations.map((operation) => {
      if (operation.kind === "range") return { kvs: this.#range(operation) };
      const change = this.#write(operation, next);
      if (change !== null) changes.push(change);
      return { kvs: [] };
    });
    if (changes.length > 0) this.#commit(next, changes);
    return { ...this.#header(), succeeded, results };
  }

  /** A transaction is carried out whole or not at all. */
  #checkLease(operation: Operation): void {
    const lease = operation.kind === "put" ? (operation.lease ?? 0n) : 0n;
    if (lease !== 0n && !this.#leases.has(lease)) {
      throw new EtcdError("lost", "unavailable", "etcdserver: requested lease not found");
    }
  }

  #holds({ target, key, rangeEnd, value }: Comparison): boolean {
    const kvs = this.#range(rangeEnd === undefined ? { key } : { key, rangeEnd });
    // Keys that do not exist have revision 0 and lease 0.
    if (kvs.length === 0) return value === 0n;
    return kvs.every((kv) => valueOf(kv, target) === value);
  }

  #write(operation: Exclude<Operation, { kind: "range" }>, revision: bigint): WatchEvent | null {
    if (operation.kind === "delete") return this.#delete(operation.key, revision);
    if (operation.kind === "put") return this.#put(operation, revision);
    const kv = this.#kvs.get(operation.key);
    if (kv === undefined) throw new EtcdError("permanent", "invalid", "etcdserver: key not found");
    return this.#put(kv, revision);
  }

  #put(put: { key: string; value: string; lease?: bigint }, revision: bigint): WatchEvent {
    const previous = this.#kvs.get(put.key);
    const lease = put.lease ?? 0n;
    if (previous !== undefined && previous.lease !== lease)
      this.#leases.get(previous.lease)?.keys.delete(put.key);
    this.#leases.get(lease)?.keys.add(put.key);
    const createRevision = previous?.createRevision ?? revision;
    const kv = { key: put.key, value: put.value, createRevision, modRevision: revision, lease };
    this.#kvs.set(put.key, kv);
    return { type: "put", kv };
  }

  #delete(key: string, revision: bigint): WatchEvent | null {
    const kv = this.#kvs.get(key);
    if (kv === undefined) return null;
    this.#kvs.delete(key);
    this.#leases.get(kv.lease)?.keys.delete(key);
    return { type: "delete", kv: { ...kv, modRevision: revision } };
  }

  #commit(revision: bigint, changes: WatchEvent[]): void {
    this.#revision = revision;
    for (const change of changes) this.#options.onChange?.(change);
    this.#watches.committed(changes);
  }

  #keepAlive(id: bigint, link: EtcdLink): LeaseLife {
    const lease = this.#leases.get(id);
    const ttl = BigInt(lease?.ttlSeconds ?? 0);
    if (this.#options.scheduler.now < (this.deposedFor.get(link.process.node.id) ?? 0)) {
      return {
        revision: this.#revision,
        raftTerm: this.#raftTerm - 1n,
        ttl: ttl || BigInt(SHORTEST_LEASE_S),
      };
    }
    if (lease !== undefined) this.#leases.extend(lease);
    return { ...this.#header(), ttl };
  }

  #revoke(id: bigint): void {
    const lease = this.#leases.get(id);
    if (lease === undefined) return;
    this.#leases.delete(id);
    const revision = this.#revision + STEP;
    const changes: WatchEvent[] = [];
    for (const key of lease.keys) {
      const change = this.#delete(key, revision);
      if (change !== null) changes.push(change);
    }
    if (changes.length > 0) this.#commit(revision, changes);
  }
}

function valueOf(kv: KeyValue, target: Comparison["target"]): bigint {
  if (target === "create") return kv.createRevision;
  return target === "mod" ? kv.modRevision : kv.lease;
}
