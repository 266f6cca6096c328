/**
 * What candidates, leaders and observers ask of voters, and what they are
 * answered. Types only; `transport/wire.ts` reads and writes them. Rules: ADR 042.
 */
import type { Heir } from "../../seam/backend.js";

/** One attempt of one candidate: a vote is for a bid, a promise is to its candidate. */
export interface Bid {
  /** Unique to the attempt. */
  readonly id: string;
  readonly candidate: string;
}

/** Would you vote for this candidate now? Changes nothing. */
export interface PreVoteRequest {
  readonly kind: "prevote";
  readonly election: string;
  readonly candidate: string;
}

export interface VoteRequest {
  readonly kind: "vote";
  readonly election: string;
  readonly term: bigint;
  readonly bid: Bid;
  /** The lease that the leader will ask for: on disk with the vote (rule 4). */
  readonly leaseMs: number;
}

export interface BeatRequest {
  readonly kind: "beat";
  readonly election: string;
  readonly term: bigint;
  readonly bid: Bid;
  readonly leaseMs: number;
  /** A majority has acknowledged this term before. */
  readonly opened: boolean;
  /** Number of the value, rising within the term. */
  readonly version: number;
  /** Left out for a voter that has acknowledged this version. */
  readonly value?: string | undefined;
  /** When the term began, by the leader's wall clock. For people. */
  readonly since: number;
}

/** The leader gives up, a campaign is withdrawn, or a claim is released for a dead leader (`id` left out). */
export interface ReleaseRequest {
  readonly kind: "release";
  readonly election: string;
  readonly term: bigint;
  readonly candidate: string;
  readonly id?: string | undefined;
  /** Who shall lead next: for so long the voter votes for no other. */
  readonly heir?: Heir | undefined;
}

/** Who leads? Answered when it differs from `change`, or after `waitMs`. */
export interface WhoRequest {
  readonly kind: "who";
  readonly election: string;
  /** The number of the last report; `-1`: answer at once. */
  readonly change: number;
  readonly waitMs: number;
}

/** Why a voter said no. */
export type Refusal =
  /** The voter has a higher term: for good. */
  | "older"
  /** This bid was released at this voter. */
  | "ended"
  /** It has promised, or voted for, or acknowledged another. */
  | "other"
  /** It has just started, and may have promised something that it does not remember. */
  | "quiet"
  /** The term is implausibly far ahead. */
  | "ahead"
  /** It has voted a moment ago: its candidate is about to lead. */
  | "busy"
  /** The last leader has left the vacancy to another candidate, for a moment. */
  | "heir"
  /** The voter takes no part: not initialised, journal broken, closing. */
  | "unfit";

/** A promise as others see it. */
export interface Promised {
  readonly term: bigint;
  readonly bid: Bid;
  /** Milliseconds the promise still lasts. */
  readonly leftMs: number;
  readonly version: number;
  readonly value: string;
  readonly since: number;
}

export interface VoteAnswer {
  readonly kind: "vote";
  readonly yes: boolean;
  /** The voter's own term: never voted for a lower one again. */
  readonly term: bigint;
  readonly why?: Refusal | undefined;
  /** The vacancy was left to this very candidate. */
  readonly heir?: boolean | undefined;
  /** Words for people, where `why` needs them. */
  readonly detail?: string | undefined;
  /** Whom it has promised, if that is why; without the value. */
  readonly promised?: { readonly term: bigint; readonly bid: Bid; readonly leftMs: number } | undefined;
  /** Milliseconds until asking again makes sense, where that is known. */
  readonly leftMs?: number | undefined;
}

export interface BeatAnswer {
  readonly kind: "beat";
  readonly yes: boolean;
  readonly term: bigint;
  readonly why?: Refusal | undefined;
  readonly detail?: string | undefined;
  /** The newest value of this term that the voter knows. */
  readonly version: number;
}

export interface ReleaseAnswer {
  readonly kind: "release";
  /** Whether the voter knew this leadership until now. */
  readonly held: boolean;
  readonly unfit?: string | undefined;
}

export interface WhoAnswer {
  readonly kind: "who";
  readonly term: bigint;
  readonly change: number;
  readonly promised: Promised | null;
  /** How long its memory of promises cannot be relied on; 0 = it can. */
  readonly quietMs: number;
  readonly unfit?: string | undefined;
}

/** Requests about elections. Registers and the start of a node have their own. */
export type ElectionRequest = PreVoteRequest | VoteRequest | BeatRequest | ReleaseRequest | WhoRequest;
export type ElectionAnswer = VoteAnswer | BeatAnswer | ReleaseAnswer | WhoAnswer;

/** What a voter has on disk of one election (rules 2 and 3). */
export interface VoteRecord {
  readonly election: string;
  readonly term: bigint;
  readonly vote: Bid | null;
  /** Whom it acknowledged in this term, if that is not whom it voted for. */
  readonly leader: Bid | null;
  /** The longest lease it may have promised in this term. */
  readonly leaseMs: number;
}
