/** What a voter knows of one election: its vote, which is on disk, and its promise, which is not. */
import type { Bid, Promised, VoteRecord } from "./messages.js";

/** A promise to a leader: until then no other candidate gets this voter's vote. */
export interface LeaderPromise {
  readonly term: bigint;
  readonly bid: Bid;
  until: number;
  version: number;
  value: string;
  readonly since: number;
}

/** What the voter knows of one election. */
export interface VoterState {
  term: bigint;
  vote: Bid | null;
  leader: Bid | null;
  leaseMs: number;
  promise: LeaderPromise | null;
  /** Released: its late BEATs make no new promise. */
  ended: { readonly term: bigint; readonly id: string } | null;
  /** Until then pre-votes of other candidates are refused. */
  busyUntil: number;
  /** For whom the last leader left the vacancy, and until when others get no vote. In memory alone. */
  heir: { readonly candidate: string; readonly until: number } | null;
  /** Until then a promise from before the start may be alive (rule 4). */
  quietUntil: number;
  /** Rises with everything that observers can see, except time. */
  change: number;
}

/** Of an election that the voter has not heard of. */
export function freshState(): VoterState {
  return {
    term: 0n,
    vote: null,
    leader: null,
    leaseMs: 0,
    promise: null,
    ended: null,
    busyUntil: 0,
    heir: null,
    quietUntil: 0,
    change: 0,
  };
}

/** The bid that may hold a promise of this term. */
export function namedBy({ leader, vote }: VoterState): Bid | null {
  return leader ?? vote;
}

/** Whether a promise binds the voter. */
export function isBound({ promise }: VoterState, now: number): boolean {
  return promise !== null && now < promise.until;
}

/** What must be on disk. */
export function recordOf(election: string, { term, vote, leader, leaseMs }: VoterState): VoteRecord {
  return { election, term, vote, leader, leaseMs };
}

/** What others are told of a promise. */
export function shownPromise(promise: LeaderPromise, now: number): Promised {
  const { term, bid, version, value, since, until } = promise;
  return { term, bid, version, value, since, leftMs: until - now };
}
