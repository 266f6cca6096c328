/**
 * The interface between the etcd backend and etcd. The gRPC client in `client/`
 * implements it, and so does the simulator, which therefore runs the same
 * backend code as production.
 *
 * Keys and values are text. int64 is `bigint` throughout: lease ids and
 * revisions beyond 2^53 are exact. An implementation never retries a request
 * that may have been carried out: a throw means "unknown", unless the error is
 * an {@link EtcdError} that says more.
 */
import type { Stop } from "../../kit/stop.js";

/** Every call is bounded by both. */
export interface CallLimits {
  readonly signal: Stop;
  readonly limitMs: number;
  /** Does not wait for a free slot: for renewals, on which other calls depend. */
  readonly urgent?: boolean;
}

/** What every answer says about the member that gave it. */
export interface Header {
  readonly revision: bigint;
  /** Raft term of the member when it filled in the header. */
  readonly raftTerm: bigint;
  /**
   * The connection that the answer came on. A server that is restored from a
   * backup restarts, so its answers come on another one. Without it nothing is
   * concluded from two answers with equal revisions.
   */
  readonly connection?: object | undefined;
}

/** A key of etcd, as an answer shows it. */
export interface KeyValue {
  readonly key: string;
  readonly value: string;
  readonly createRevision: bigint;
  readonly modRevision: bigint;
  readonly lease: bigint;
}

/** Which keys to read. */
export interface RangeRequest {
  readonly key: string;
  /** Exclusive end; without it, just the one key. */
  readonly rangeEnd?: string;
  readonly limit?: number;
  readonly sort?: "oldest-first" | "newest-first";
  /** Only keys created at or before this revision; must be positive. */
  readonly maxCreateRevision?: bigint;
  readonly keysOnly?: boolean;
}

/** The keys that were read. */
export interface RangeAnswer {
  readonly kvs: readonly KeyValue[];
}

/** One step of a transaction. */
export type Operation =
  | ({ readonly kind: "range" } & RangeRequest)
  | { readonly kind: "put"; readonly key: string; readonly value: string; readonly lease?: bigint }
  /** Tells whoever watches the key: its value and its lease stay. It must exist. */
  | { readonly kind: "touch"; readonly key: string }
  | { readonly kind: "delete"; readonly key: string };

/** All compare for equality. With `rangeEnd`: every key in the range, and `0n` means "there is none". */
export interface Comparison {
  readonly target: "create" | "mod" | "lease";
  readonly key: string;
  readonly rangeEnd?: string;
  readonly value: bigint;
}

/** A transaction: if all comparisons hold the one list of operations, else the other. */
export interface Transaction {
  readonly when: readonly Comparison[];
  readonly then: readonly Operation[];
  readonly otherwise: readonly Operation[];
}

/** The answer to a transaction. */
export interface TransactionAnswer extends Header {
  readonly succeeded: boolean;
  /** One for each operation of the branch that ran; puts and deletes have no keys. */
  readonly results: readonly RangeAnswer[];
}

/** A lease that was granted. */
export interface LeaseGrant {
  readonly id: bigint;
  /** Seconds the server really granted. */
  readonly ttl: bigint;
}

/** The answer to a keep-alive. */
export interface LeaseLife extends Header {
  /** Seconds; zero or less: the answering member knows no such lease. */
  readonly ttl: bigint;
}

/** What is to be watched. */
export interface WatchRequest {
  readonly key: string;
  readonly rangeEnd?: string;
  /**
   * First revision to report. Without it: from the revision at which the server
   * creates the watch, reported as `created`. A server delivers past events with
   * a delay (etcd: ten times a second), new ones at once.
   */
  readonly startRevision?: bigint;
  /** Which events to leave out at the server. */
  readonly skip?: "puts" | "deletes";
  /**
   * The server may be asked some milliseconds later, together with others; one
   * that is cancelled before that costs nothing. Only with a start revision.
   */
  readonly unhurried?: boolean;
}

/** One change of a key. */
export interface WatchEvent {
  readonly type: "put" | "delete";
  readonly kv: KeyValue;
}

/** What is told of a watch. */
export type WatchNotice =
  /** The watch was created: all changes after this revision are reported. Only if it began without a start revision. */
  | { readonly kind: "created"; readonly revision: bigint }
  | { readonly kind: "events"; readonly events: readonly WatchEvent[] }
  /** History up to this revision is gone; what happened must be read. The watch is over. */
  | { readonly kind: "compacted"; readonly revision: bigint }
  /** Refused by the server. The watch is over. A lost connection is not a failure: it is resumed. */
  | { readonly kind: "failed"; readonly error: Error };

/** What the backend needs of a client of etcd. */
export interface EtcdClient extends AsyncDisposable {
  transaction(transaction: Transaction, limits: CallLimits): Promise<TransactionAnswer>;
  leaseGrant(ttlSeconds: bigint, limits: CallLimits): Promise<LeaseGrant>;
  /** One keep-alive, paired with its own answer: an answer to an earlier request is never taken for it. */
  leaseKeepAlive(id: bigint, limits: CallLimits): Promise<LeaseLife>;
  /** No error if the lease is gone already. */
  leaseRevoke(id: bigint, limits: CallLimits): Promise<void>;
  /**
   * Tells `sink` of changes until the returned function is called, across
   * reconnects, in order, none left out: until it says "compacted" or "failed".
   * A hint all the same: it may come late or never.
   */
  watch(request: WatchRequest, sink: (notice: WatchNotice) => void): () => void;
}
