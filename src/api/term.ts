/** One unbroken leadership with one token, as its leader sees it. */
import type { Bearer, Fence, FencedResource, Guard } from "../seam/fence.js";

/**
 * Why a term ended. `resigned`: given up on purpose. `closed`: the election was
 * closed. `expired`: the deadline passed without a renewal. `revoked`: the store
 * says that this candidate does not lead any more.
 */
export type EndReason = "resigned" | "closed" | "expired" | "revoked";

/** How a term ended. */
export interface TermEnd {
  readonly reason: EndReason;
  /** One line for people. */
  readonly detail: string;
  /**
   * Whether the work had stopped before leadership was given up. `false` after
   * a loss, and when the work did not stop within `drainMs`: then leadership
   * was not handed over but expired.
   */
  readonly drained: boolean;
}

/**
 * What became of a transfer, as it was seen in the store. `taken`: the candidate
 * that was named leads. `taken-by-other`: another one does. `timeout`: nobody was
 * seen to lead in the time that the vacancy was left to the one that was named;
 * from then on anybody may.
 */
export type TransferResult = "taken" | "taken-by-other" | "timeout";

/** A candidate on the roster of its election. */
export interface Standee {
  readonly candidate: string;
  readonly priority: number;
  /** `false`: an observer, which never leads. */
  readonly eligible: boolean;
  /** Whether it led at its last beat, at most half a ttl ago; who leads now, `leader()` says. */
  readonly leads: boolean;
  /** When it began to stand, by its own wall clock, in epoch milliseconds; for people. */
  readonly since: number;
  /** Whether it is the candidate that was asked. */
  readonly self: boolean;
}

/** How a term is handed over. */
export interface TransferOptions {
  /**
   * How long the vacancy is left to the candidate that was named, and how long
   * its taking is waited for, from the moment the lease is given back; at most
   * 60 s. Default twice `retryMs`.
   */
  readonly timeoutMs?: number | undefined;
  /** Gives up waiting for the result. The term ends all the same. */
  readonly signal?: AbortSignal | undefined;
}

/** One unbroken leadership with one token. Terms come from an election or a lock. */
export interface Term extends Bearer, AsyncDisposable {
  readonly election: string;
  readonly candidate: string;
  /** Fencing token: strictly rising from term to term. Hand it to every resource that can check it. */
  readonly token: bigint;
  /** When the term began, by the wall clock, in epoch milliseconds. */
  readonly since: number;
  /** What observers see with this leadership. */
  readonly value: string;
  /**
   * Whether this candidate leads at this very moment, computed from the clocks
   * at the call. Stays true while the work drains after {@link signal} aborted
   * for a resignation. It cannot speak for the moment *after* the call: for
   * that there is the {@link token}.
   */
  readonly held: boolean;
  /** Milliseconds that leadership is certain if no renewal succeeds any more; 0 when it is over. */
  readonly remainingMs: number;
  /** How long the term has lasted so far, or lasted in all. */
  readonly lastedMs: number;
  /**
   * Aborts when the work must stop: the term is lost, or being given up. After a
   * SIGSTOP or a blocked event loop other timers may run before this event does:
   * before an act that must not be done twice, ask {@link held} or {@link assertHeld}.
   */
  readonly signal: AbortSignal;
  /** How it ended, once it has. */
  readonly end: TermEnd | undefined;
  /** Settles when the term is over and reported; never rejects. */
  readonly ended: Promise<TermEnd>;
  /** Throws a {@link NotLeaderError} unless this candidate leads at this very moment. */
  assertHeld(): void;
  /**
   * Binds this term to a resource that checks tokens: what comes back acts under
   * this term's {@link token}, and rejects with a `StaleLeaderError` once the
   * resource has seen a newer one, even if this process was stopped in between.
   */
  guard<Acts>(resource: FencedResource<Acts>): Acts;
  guard(fence: Fence): Guard;
  /** Publishes a new value to all observers. Rejects if leadership is lost. */
  proclaim(value: string): Promise<void>;
  /**
   * Gives leadership up: aborts {@link signal}, then hands over. For a term from
   * `campaign()` stop the work first; the promise settles when the lease is
   * released. Inside `run()` it only starts the end, since the work itself may
   * be the one to wait for it: await {@link ended} elsewhere. Idempotent.
   */
  resign(): Promise<void>;
  /**
   * Gives leadership up like {@link resign}, and names who shall lead next: a
   * candidate's id, or its readable part if that is one candidate's alone. The
   * store leaves the vacancy to it for a bounded time; then anybody may lead. A
   * wish, not a promise: the result is what was seen in the store. Inside `run()`
   * the work must not wait for it, since the lease is given back only when the
   * work has stopped: start it and return, or call `election.transfer()` elsewhere.
   */
  transfer(to: string, options?: TransferOptions): Promise<TransferResult>;
}
