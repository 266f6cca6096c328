/**
 * What elections ask of Consul, and no more. A small seam, so that another
 * client can be handed in and the simulator can be one.
 */
import type { Stop } from "../../kit/stop.js";

/** Bounds of one request. A request that ends by them throws: whether it took effect is unknown. */
export interface CallLimits {
  /** Ends the request when it aborts. An AbortSignal will do. */
  readonly signal: Stop;
  readonly limitMs: number;
}

/** A key as Consul has it. Numbers are exact, also beyond 2^53. */
export interface KeyValue {
  readonly key: string;
  readonly value: string;
  readonly flags: bigint;
  /** The session that holds its lock; `undefined`: nobody does. */
  readonly session: string | undefined;
  /** Raft index of the write that made it what it is. */
  readonly modifyIndex: bigint;
}

/** How a session is to be made. */
export interface SessionRequest {
  readonly name: string;
  readonly ttlSeconds: number;
  readonly lockDelayMs: number;
}

/** One step of a transaction. */
export type Operation =
  | {
      readonly verb: "lock" | "unlock";
      readonly key: string;
      readonly session: string;
      readonly value: string;
      readonly flags: bigint;
    }
  | { readonly verb: "check-index"; readonly key: string; readonly index: bigint }
  | { readonly verb: "check-not-exists"; readonly key: string }
  | { readonly verb: "delete-cas"; readonly key: string; readonly index: bigint }
  | {
      readonly verb: "cas";
      readonly key: string;
      /** Zero: it must not exist. */
      readonly index: bigint;
      readonly value: string;
      readonly flags: bigint;
    };

/** Why a transaction was not carried out. */
export type Refusal =
  /** Another session holds the lock, or none does where ours should. */
  | "held"
  /** The key is not what it was when it was read. */
  | "changed"
  /** The lock is free, but Consul keeps it closed for a while after a session ended with it. */
  | "lock-delay"
  /** Consul does not know the session. */
  | "no-session";

/** Carried out, with the modify index of the last key written (zero: it was deleted); or refused, and certainly nothing was written. */
export type TransactionAnswer =
  | { readonly committed: true; readonly modifyIndex: bigint }
  | { readonly committed: false; readonly refusal: Refusal };

/** A lock that a session should have. */
export interface HeldLock {
  readonly key: string;
  readonly session: string;
}

/** Which keys are looked at. */
export type KeyRange = { readonly key: string } | { readonly prefix: string };

/** A look at some keys. */
export interface ReadRequest {
  readonly range: KeyRange;
  /** Answer when something has changed since this index, or after `waitMs`. Absent: at once. */
  readonly since?: { readonly index: bigint; readonly waitMs: number } | undefined;
}

/** What a look found. */
export interface ReadAnswer {
  /** Where the next look goes on from. */
  readonly index: bigint;
  readonly kvs: readonly KeyValue[];
}

/** A connection to Consul, as far as elections need one. Reads are consistent: confirmed by a quorum. */
export interface ConsulClient extends AsyncDisposable {
  /** The id of a new session. */
  createSession(request: SessionRequest, limits: CallLimits): Promise<string>;
  /** `false`: the server that answered does not know it. */
  renewSession(id: string, limits: CallLimits): Promise<boolean>;
  /** Whether it exists, by a consistent read. */
  hasSession(id: string, limits: CallLimits): Promise<boolean>;
  destroySession(id: string, limits: CallLimits): Promise<void>;
  transaction(operations: readonly Operation[], limits: CallLimits): Promise<TransactionAnswer>;
  /** Whether each of these keys is locked by its session, all at one instant. At most 64. */
  holds(locks: readonly HeldLock[], limits: CallLimits): Promise<boolean>;
  read(request: ReadRequest, limits: CallLimits): Promise<ReadAnswer>;
  /** Names of all keys that begin with this. */
  keys(prefix: string, limits: CallLimits): Promise<readonly string[]>;
  /** Connections that wait for an answer are on a path that has gone silent: they are given up and made anew. */
  distrust(): void;
}
