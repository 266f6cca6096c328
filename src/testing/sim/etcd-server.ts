/**
 * A model of etcd for queue elections: keys with create and mod revisions,
 * guarded transactions, leases that end by the *server's* clock, watches from a
 * revision. {@link SimEtcd} is what one process sees of it; it is as narrow as
 * elections need.
 *
 * Also modelled: a cluster leader that was deposed and does not know it, which
 * answers keep-alives although it can extend nothing. Its answers carry an old
 * raft term.
 */
import { ConclaveError } from "../../core/errors.js";
import { onAbort } from "../../core/waiting.js";
import type { Link } from "./network.js";
import type { Oscillator } from "./oscillator.js";
import type { Random } from "./random.js";
import type { Scheduler } from "./scheduler.js";

export interface SimKeyValue {
  readonly key: string;
  readonly value: string;
  readonly createRevision: bigint;
  readonly modRevision: bigint;
  /** `0n`: bound to no lease. */
  readonly lease: bigint;
}

/** Every answer says how far the store was, and by whose word. */
export interface SimHeader {
  readonly revision: bigint;
  readonly raftTerm: bigint;
}

export interface SimRange {
  readonly key: string;
  /** All keys that start with `key`. */
  readonly prefix?: boolean;
  readonly maxCreateRevision?: bigint;
  /** By create revision. */
  readonly order?: "ascending" | "descending";
  readonly limit?: number;
}

/** Holds if the key's create (or mod) revision is this; `0n` = the key does not exist. */
export type SimCompare =
  | { readonly key: string; readonly createRevision: bigint }
  | { readonly key: string; readonly modRevision: bigint };

export type SimOp =
  | { readonly range: SimRange }
  | { readonly put: { readonly key: string; readonly value: string; readonly lease?: bigint } }
  | { readonly delete: { readonly key: string } };

export interface SimTxn {
  readonly compare: readonly SimCompare[];
  readonly success: readonly SimOp[];
  readonly failure: readonly SimOp[];
}

export interface SimTxnAnswer {
  readonly header: SimHeader;
  readonly succeeded: boolean;
  /** One list for each operation that ran; empty for puts and deletes. */
  readonly ranges: readonly (readonly SimKeyValue[])[];
}

export interface SimWatchEvent {
  readonly type: "put" | "delete";
  readonly kv: SimKeyValue;
}

interface Call {
  readonly signal: AbortSignal;
}

/** What one process sees. Every call may fail without saying whether it took effect. */
export interface SimEtcd {
  range(range: SimRange, call: Call): Promise<{ header: SimHeader; kvs: readonly SimKeyValue[] }>;
  txn(txn: SimTxn, call: Call): Promise<SimTxnAnswer>;
  grant(ttlSeconds: number, call: Call): Promise<{ header: SimHeader; id: bigint; ttlSeconds: number }>;
  /** `ttlSeconds` 0: there is no such lease. */
  keepAlive(id: bigint, call: Call): Promise<{ header: SimHeader; ttlSeconds: number }>;
  revoke(id: bigint, call: Call): Promise<void>;
  /** Tells of changes of a key (or prefix) from `fromRevision` on, until the signal aborts or the stream breaks. */
  watch(
    target: { key: string; prefix?: boolean; fromRevision: bigint },
    onEvents: (events: readonly SimWatchEvent[], header: SimHeader) => void,
    call: Call,
  ): Promise<void>;
}

interface Lease {
  readonly id: bigint;
  readonly ttlSeconds: number;
  expiresAt: number;
  readonly keys: Set<string>;
}

interface Watcher {
  readonly link: Link;
  readonly key: string;
  readonly prefix: boolean;
  tell(events: readonly SimWatchEvent[]): void;
  broke(): void;
}

/** etcd refuses to keep leases shorter than this (1.5 x its election timeout, rounded up). */
const SHORTEST_LEASE_S = 2;
/** How late the server may notice that a lease has run out. */
const EXPIRY_SLACK_MS = 500;

export interface EtcdServerOptions {
  readonly scheduler: Scheduler;
  readonly oscillator: Oscillator;
  readonly random: Random;
  readonly onChange?: (event: SimWatchEvent) => void;
}

export class EtcdServer {
  /** Until then a deposed leader, which is sure it still leads, answers the keep-alives of these processes. */
  readonly deposedFor = new Map<string, number>();
  readonly #options: EtcdServerOptions;
  readonly #kvs = new Map<string, SimKeyValue>();
  readonly #log: SimWatchEvent[] = [];
  readonly #leases = new Map<bigint, Lease>();
  readonly #watchers = new Set<Watcher>();
  #revision = 1n;
  #raftTerm = 2n;

  constructor(options: EtcdServerOptions) {
    this.#options = options;
  }

  connect(link: Link): SimEtcd {
    return {
      range: (range, { signal }) =>
        link.call("range", () => ({ header: this.#header(), kvs: this.#range(range) }), signal),
      txn: (txn, { signal }) => link.call("txn", () => this.#txn(txn), signal),
      grant: (ttlSeconds, { signal }) => link.call("grant", () => this.#grant(ttlSeconds), signal),
      keepAlive: (id, { signal }) => link.call("keepAlive", () => this.#keepAlive(id, link), signal),
      revoke: (id, { signal }) => link.call("revoke", () => this.#revoke(id), signal),
      watch: (target, onEvents, { signal }) => this.#watch(link, target, onEvents, signal),
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

  #header(): SimHeader {
    return { revision: this.#revision, raftTerm: this.#raftTerm };
  }

  #range(range: SimRange): SimKeyValue[] {
    const found: SimKeyValue[] = [];
    for (const kv of this.#kvs.values()) {
      if (range.prefix ? !kv.key.startsWith(range.key) : kv.key !== range.key) continue;
      if (range.maxCreateRevision !== undefined && kv.createRevision > range.maxCreateRevision) continue;
      found.push(kv);
    }
    const sign = range.order === "descending" ? -1 : 1;
    found.sort((a, b) => sign * (a.createRevision < b.createRevision ? -1 : 1));
    return range.limit === undefined ? found : found.slice(0, range.limit);
  }

  #txn(txn: SimTxn): SimTxnAnswer {
    const succeeded = txn.compare.every((compare) => this.#holds(compare));
    const changes: SimWatchEvent[] = [];
    const ops = succeeded ? txn.success : txn.failure;
    // One transaction is one revision, however many keys it touches.
    const next = this.#revision + 1n;
    const ranges = ops.map((op) => {
      if ("range" in op) return this.#range(op.range);
      const change = "put" in op ? this.#put(op.put, next) : this.#delete(op.delete.key, next);
      if (change !== null) changes.push(change);
      return [];
    });
    if (changes.length > 0) this.#commit(next, changes);
    return { header: this.#header(), succeeded, ranges };
  }

  #holds(compare: SimCompare): boolean {
    const kv = this.#kvs.get(compare.key);
    if ("createRevision" in compare) return (kv?.createRevision ?? 0n) === compare.createRevision;
    return (kv?.modRevision ?? 0n) === compare.modRevision;
  }

  #put(put: { key: string; value: string; lease?: bigint }, revision: bigint): SimWatchEvent {
    const previous = this.#kvs.get(put.key);
    const lease = put.lease ?? 0n;
    if (lease !== 0n) {
      const held = this.#leases.get(lease);
      if (held === undefined) throw new ConclaveError("conflict", "etcdserver: requested lease not found");
      held.keys.add(put.key);
    }
    if (previous !== undefined && previous.lease !== lease) this.#leases.get(previous.lease)?.keys.delete(put.key);
    const createRevision = previous?.createRevision ?? revision;
    const kv = { key: put.key, value: put.value, createRevision, modRevision: revision, lease };
    this.#kvs.set(put.key, kv);
    return { type: "put", kv };
  }

  #delete(key: string, revision: bigint): SimWatchEvent | null {
    const kv = this.#kvs.get(key);
    if (kv === undefined) return null;
    this.#kvs.delete(key);
    this.#leases.get(kv.lease)?.keys.delete(key);
    return { type: "delete", kv: { ...kv, modRevision: revision } };
  }

  #commit(revision: bigint, changes: SimWatchEvent[]): void {
    this.#revision = revision;
    for (const change of changes) {
      this.#log.push(change);
      this.#options.onChange?.(change);
    }
    this.#tell(changes);
  }

  #grant(ttlSeconds: number): { header: SimHeader; id: bigint; ttlSeconds: number } {
    const granted = Math.max(SHORTEST_LEASE_S, Math.ceil(ttlSeconds));
    const id = BigInt(`0x${this.#options.random.hex(15)}`) + 1n;
    const lease = { id, ttlSeconds: granted, expiresAt: 0, keys: new Set<string>() };
    this.#leases.set(id, lease);
    this.#extend(lease);
    this.#await(lease);
    return { header: this.#header(), id, ttlSeconds: granted };
  }

  #keepAlive(id: bigint, link: Link): { header: SimHeader; ttlSeconds: number } {
    const lease = this.#leases.get(id);
    const deposed = this.deposedFor.get(link.process.node.id) ?? 0;
    if (this.#options.scheduler.now < deposed) {
      const header = { revision: this.#revision, raftTerm: this.#raftTerm - 1n };
      return { header, ttlSeconds: lease?.ttlSeconds ?? SHORTEST_LEASE_S };
    }
    if (lease !== undefined) this.#extend(lease);
    return { header: this.#header(), ttlSeconds: lease?.ttlSeconds ?? 0 };
  }

  #revoke(id: bigint): void {
    const lease = this.#leases.get(id);
    if (lease === undefined) return;
    this.#leases.delete(id);
    const revision = this.#revision + 1n;
    const changes: SimWatchEvent[] = [];
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

  #watch(
    link: Link,
    target: { key: string; prefix?: boolean; fromRevision: bigint },
    onEvents: (events: readonly SimWatchEvent[], header: SimHeader) => void,
    signal: AbortSignal,
  ): Promise<void> {
    return new Promise((resolve, reject) => {
      const { key, prefix = false, fromRevision } = target;
      const watcher: Watcher = {
        link,
        key,
        prefix,
        tell: (events) => void (signal.aborted || onEvents(events, this.#header())),
        broke: () => reject(new ConclaveError("unavailable", "the watch broke")),
      };
      onAbort(signal, () => {
        this.#watchers.delete(watcher);
        resolve();
      });
      const arm = (): void => {
        if (signal.aborted) return;
        this.#watchers.add(watcher);
        const missed = this.#log.filter(({ kv }) => kv.modRevision >= fromRevision && concerns(watcher, kv.key));
        if (missed.length > 0) this.#send(watcher, missed);
      };
      link.call("watch", arm, signal).catch(reject);
    });
  }

  #tell(changes: readonly SimWatchEvent[]): void {
    for (const watcher of [...this.#watchers]) {
      const events = changes.filter(({ kv }) => concerns(watcher, kv.key));
      if (events.length > 0) this.#send(watcher, events);
    }
  }

  #send(watcher: Watcher, events: readonly SimWatchEvent[]): void {
    const { link } = watcher;
    if (!link.process.alive) this.#watchers.delete(watcher);
    else if (!link.notify(() => watcher.tell(events)) && link.breaks()) {
      this.#watchers.delete(watcher);
      if (link.coin()) link.notify(() => watcher.broke());
    }
  }
}

function concerns(watcher: { key: string; prefix: boolean }, key: string): boolean {
  return watcher.prefix ? key.startsWith(watcher.key) : key === watcher.key;
}
