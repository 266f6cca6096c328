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
  LeaseGrant,
  LeaseLife,
  Operation,
  RangeRequest,
  Transaction,
  TransactionAnswer,
  WatchEvent,
  WatchNotice,
  WatchRequest,
} from "../../backends/etcd/client.js";
import { EtcdError } from "../../backends/etcd/client/errors.js";
import type { Clock } from "../../core/clock.js";
import { limited } from "../../core/waiting.js";
import type { Link } from "./network.js";
import type { Oscillator } from "./oscillator.js";
import type { Random } from "./random.js";
import type { Scheduler } from "./scheduler.js";

interface Lease {
  readonly id: bigint;
  readonly ttlSeconds: number;
  expiresAt: number;
  readonly keys: Set<string>;
}

interface Watcher {
  readonly link: Link;
  readonly request: WatchRequest;
  readonly sink: (notice: WatchNotice) => void;
  /** First revision that was not told yet; unknown until it is told where the watch begins. */
  next: bigint | undefined;
  stopped: boolean;
}

/** etcd refuses to keep leases shorter than this (1.5 x its election timeout, rounded up). */
const SHORTEST_LEASE_S = 2;
/** How late the server may notice that a lease has run out. */
const EXPIRY_SLACK_MS = 500;
/** How long a broken watch takes to be noticed and resumed. */
const RESUME_MS = 2_000;

export interface EtcdServerOptions {
  readonly scheduler: Scheduler;
  readonly oscillator: Oscillator;
  readonly random: Random;
  readonly onChange?: (event: WatchEvent) => void;
}

export class EtcdServer {
  /** Until then a deposed leader, which is sure it still leads, answers the keep-alives of these nodes. */
  readonly deposedFor = new Map<string, number>();
  readonly #options: EtcdServerOptions;
  readonly #kvs = new Map<string, KeyValue>();
  readonly #log: WatchEvent[] = [];
  readonly #leases = new Map<bigint, Lease>();
  readonly #watchers = new Set<Watcher>();
  #revision = 1n;
  #raftTerm = 2n;

  constructor(options: EtcdServerOptions) {
    this.#options = options;
  }

  /** The client of one process. */
  connect(link: Link, clock: Clock): EtcdClient {
    const call = <T>(what: string, serve: () => T, limits: CallLimits): Promise<T> =>
      limited(clock, limits.limitMs, limits.signal, `${what} on etcd`, (signal) =>
        link.call(what, serve, signal),
      );
    return {
      transaction: (transaction, limits) => call("transaction", () => this.#transact(transaction), limits),
      leaseGrant: (ttl, limits) => call("grant", () => this.#grant(Number(ttl)), limits),
      leaseKeepAlive: (id, limits) => call("keep-alive", () => this.#keepAlive(id, link), limits),
      leaseRevoke: (id, limits) => call("revoke", () => this.#revoke(id), limits),
      watch: (request, sink) => this.#watch(link, request, sink),
      [Symbol.asyncDispose]: async () => {},
    };
  }

  /** Whether the key that was created at this revision is still there. */
  has(createRevision: bigint): boolean {
    for (const kv of this.#kvs.values()) if (kv.createRevision === createRevision) return true;
    return false;
  }

  /** The cluster changed its leader. Leases are given their full time again, as etcd does. */
  failOver(): void {
    this.#raftTerm++;
    for (const lease of this.#leases.values()) this.#extend(lease);
  }

  #header(): Header {
    return { revision: this.#revision, raftTerm: this.#raftTerm };
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
    const next = this.#revision + 1n;
    const operations = succeeded ? transaction.then : transaction.otherwise;
    for (const operation of operations) this.#checkLease(operation);
    const results = operations.map((operation) => {
      if (operation.kind === "range") return { kvs: this.#range(operation) };
      const change =
        operation.kind === "put" ? this.#put(operation, next) : this.#delete(operation.key, next);
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
    for (const change of changes) {
      this.#log.push(change);
      this.#options.onChange?.(change);
    }
    for (const watcher of [...this.#watchers]) this.#tell(watcher);
  }

  #grant(ttlSeconds: number): LeaseGrant {
    const granted = Math.max(SHORTEST_LEASE_S, ttlSeconds);
    const id = BigInt(`0x${this.#options.random.hex(15)}`) + 1n;
    const lease = { id, ttlSeconds: granted, expiresAt: 0, keys: new Set<string>() };
    this.#leases.set(id, lease);
    this.#extend(lease);
    this.#await(lease);
    return { id, ttl: BigInt(granted) };
  }

  #keepAlive(id: bigint, link: Link): LeaseLife {
    const lease = this.#leases.get(id);
    const ttl = BigInt(lease?.ttlSeconds ?? 0);
    if (this.#options.scheduler.now < (this.deposedFor.get(link.process.node.id) ?? 0)) {
      return {
        revision: this.#revision,
        raftTerm: this.#raftTerm - 1n,
        ttl: ttl || BigInt(SHORTEST_LEASE_S),
      };
    }
    if (lease !== undefined) this.#extend(lease);
    return { ...this.#header(), ttl };
  }

  #revoke(id: bigint): void {
    const lease = this.#leases.get(id);
    if (lease === undefined) return;
    this.#leases.delete(id);
    const revision = this.#revision + 1n;
    const changes: WatchEvent[] = [];
    for (const key of lease.keys) {
      const change = this.#delete(key, revision);
      if (change !== null) changes.push(change);
    }
    if (changes.length > 0) this.#commit(revision, changes);
  }

  #extend(lease: Lease): void {
    const { oscillator, scheduler } = this.#options;
    lease.expiresAt = oscillator.mono(scheduler.now) + lease.ttlSeconds * 1000;
  }

  /** Looks at a lease when it may have run out. */
  #await(lease: Lease): void {
    const { oscillator, scheduler, random } = this.#options;
    const time = oscillator.whenMono(lease.expiresAt) + Math.max(0, random.next() - 0.3) * EXPIRY_SLACK_MS;
    scheduler.quietly(time, () => {
      if (!this.#leases.has(lease.id)) return;
      if (oscillator.mono(scheduler.now) >= lease.expiresAt) this.#revoke(lease.id);
      else this.#await(lease);
    });
  }

  #watch(link: Link, request: WatchRequest, sink: (notice: WatchNotice) => void): () => void {
    const watcher: Watcher = { link, request, sink, next: request.startRevision, stopped: false };
    const stop = new AbortController();
    const arm = (): void => {
      if (watcher.stopped) return;
      this.#watchers.add(watcher);
      this.#tell(watcher);
    };
    // Arming takes a round trip; one that gets lost is tried again, like a stream that broke.
    link.call("watch", arm, stop.signal).catch(() => this.#resume(watcher));
    return () => {
      watcher.stopped = true;
      this.#watchers.delete(watcher);
      stop.abort();
    };
  }

  /** Tells what was not told yet. If that gets lost the stream is broken: nothing more comes before it is resumed. */
  #tell(watcher: Watcher): void {
    const { link } = watcher;
    if (!link.process.alive || watcher.stopped) return void this.#watchers.delete(watcher);
    const notice = this.#news(watcher);
    if (notice === undefined) {
      if (this.#watchers.has(watcher)) watcher.next = this.#revision + 1n;
      return;
    }
    const told = link.notify(() => {
      if (!watcher.stopped) watcher.sink(notice);
    });
    if (!told && link.breaks()) {
      this.#watchers.delete(watcher);
      this.#resume(watcher);
    } else watcher.next = this.#revision + 1n;
  }

  #news({ request, next }: Watcher): WatchNotice | undefined {
    if (next === undefined) return { kind: "standing", revision: this.#revision };
    const events = this.#since(next).filter(
      ({ type, kv }) => within(kv.key, request) && request.skip !== `${type}s`,
    );
    return events.length === 0 ? undefined : { kind: "events", events };
  }

  /** What happened from this revision on. The log grows at its end alone: only that is looked at. */
  #since(revision: bigint): WatchEvent[] {
    let first = this.#log.length;
    while (first > 0 && this.#log[first - 1]!.kv.modRevision >= revision) first--;
    return this.#log.slice(first);
  }

  /** Half of the broken streams are noticed in a while; the others hang for good. */
  #resume(watcher: Watcher): void {
    if (watcher.stopped || !watcher.link.process.alive || watcher.link.coin()) return;
    const { scheduler, random } = this.#options;
    scheduler.quietly(scheduler.now + random.next() * RESUME_MS, () => {
      this.#watchers.add(watcher);
      this.#tell(watcher);
    });
  }
}

function within(key: string, { key: from, rangeEnd }: { key: string; rangeEnd?: string }): boolean {
  return rangeEnd === undefined ? key === from : key >= from && key < rangeEnd;
}

function valueOf(kv: KeyValue, target: Comparison["target"]): bigint {
  if (target === "create") return kv.createRevision;
  return target === "mod" ? kv.modRevision : kv.lease;
}
