/**
 * The voter: rules 1 to 5 of ADR 042, without I/O. It takes a request and the
 * time, and says what to answer and what must be on disk before the answer goes
 * out. Its memory changes at once, so that two requests in a row are judged
 * consistently; therefore *every* answer waits for all records handed out before.
 */
import { heirFrom, isHeir } from "../../kit/heir.js";
import type {
  BeatAnswer,
  BeatRequest,
  Bid,
  PreVoteRequest,
  Refusal,
  ReleaseAnswer,
  ReleaseRequest,
  VoteAnswer,
  VoteRecord,
  VoteRequest,
  WhoAnswer,
} from "./messages.js";
import { freshState, isBound, namedBy, recordOf, shownPromise } from "./voter-state.js";
import type { VoterState } from "./voter-state.js";

/** The voter's own clocks, read when the request arrived. */
export interface Now {
  /** Monotonic. */
  readonly now: number;
  /** Epoch milliseconds: only to refuse terms from the far future. */
  readonly wall: number;
}

/** An answer, and what must be durable before it is sent. */
export interface Decision<Answer> {
  readonly answer: Answer;
  readonly persist?: VoteRecord | undefined;
}

export interface VoterOptions {
  /** What the journal holds. */
  readonly records: Iterable<VoteRecord>;
  /** No term up to this one is ever voted for or acknowledged, in any election. */
  readonly floor: bigint;
  /** Candidates are told to begin above this, so that a cluster that lost everything does not repeat tokens. */
  readonly seed?: bigint | undefined;
  /** Monotonic instant of this start. */
  readonly startedAt: number;
  /** Elections it keeps at most. */
  readonly mostElections?: number | undefined;
}

/** A term this far beyond clock and memory was not reached by elections. */
export const FAR_AHEAD = 86_400_000n;
/** A voter that has just voted says no to the pre-votes of others for this share of the lease, at most so long. */
const BUSY_SHARE = 1 / 8;
const BUSY_MS = 100;
const MOST_ELECTIONS = 100_000;

export class Voter {
  readonly #states = new Map<string, VoterState>();
  readonly #floor: bigint;
  readonly #seed: bigint;
  readonly #most: number;
  readonly #changed: (election: string) => void;

  /** `changed`: called when the report of an election differs from the last one. */
  constructor(options: VoterOptions, changed: (election: string) => void = () => {}) {
    this.#floor = options.floor;
    this.#seed = options.seed ?? 0n;
    this.#most = options.mostElections ?? MOST_ELECTIONS;
    this.#changed = changed;
    for (const { election, term, vote, leader, leaseMs } of options.records) {
      this.#states.set(election, {
        ...freshState(),
        term,
        vote,
        leader,
        leaseMs,
        quietUntil: options.startedAt + leaseMs,
      });
    }
  }

  prevote({ election, candidate }: PreVoteRequest, { now }: Now): VoteAnswer {
    const state = this.#look(election);
    const answer = this.#refused(state, candidate, now);
    if (answer !== undefined) return answer;
    if (now < state.busyUntil && state.vote?.candidate !== candidate)
      return { ...this.#no(state, "busy"), leftMs: state.busyUntil - now };
    const own = this.#term(state);
    const heir = state.heir !== null && now < state.heir.until;
    return { kind: "vote", yes: true, term: own > this.#seed ? own : this.#seed, ...(heir && { heir }) };
  }

  vote({ election, term, bid, leaseMs }: VoteRequest, at: Now): Decision<VoteAnswer> {
    const state = this.#look(election);
    if (term <= this.#term(state)) {
      const again = term === state.term && state.vote?.id === bid.id;
      if (!again) return { answer: this.#no(state, "older") };
      // A question that comes twice, late: somebody else may have opened the term meanwhile.
      const other = this.#promisedOther(state, bid.candidate, at.now);
      return { answer: other ?? { kind: "vote", yes: true, term: state.term } };
    }
    if (this.#isAhead(term, state, at)) return { answer: this.#no(state, "ahead", aheadOf(term)) };
    const refused = this.#refused(state, bid.candidate, at.now);
    if (refused !== undefined) return { answer: refused };
    const kept = this.#keep(election, state);
    if (kept === undefined) return { answer: this.#no(state, "unfit", tooMany(this.#most)) };
    // Only a promise to this very candidate can be alive here: its longer lease stays on disk.
    kept.leaseMs = Math.max(leaseMs, isBound(kept, at.now) ? kept.leaseMs : 0);
    kept.heir = null;
    kept.term = term;
    kept.vote = bid;
    kept.leader = null;
    kept.busyUntil = at.now + Math.min(BUSY_MS, leaseMs * BUSY_SHARE);
    this.#tell(election, kept);
    return { answer: { kind: "vote", yes: true, term }, persist: recordOf(election, kept) };
  }

  beat(request: BeatRequest, at: Now): Decision<BeatAnswer> {
    const { election, term } = request;
    const state = this.#look(election);
    const why = this.#refusesBeat(state, request, at);
    if (why !== undefined) return { answer: this.#noBeat(state, why) };
    const kept = this.#keep(election, state);
    if (kept === undefined) return { answer: this.#noBeat(state, "unfit", tooMany(this.#most)) };
    const persist = this.#adopt(election, kept, request, at.now);
    const version = this.#promise(election, kept, request, at.now);
    return { answer: { kind: "beat", yes: true, term, version }, persist };
  }

  release({ election, term, candidate, id, heir }: ReleaseRequest, { now }: Now): ReleaseAnswer {
    const state = this.#states.get(election);
    if (state === undefined) return { kind: "release", held: false };
    const fits = (bid: Bid | null | undefined): boolean =>
      bid?.candidate === candidate && (id === undefined || bid.id === id);
    const { promise } = state;
    const promised = promise?.term === term && fits(promise.bid);
    const named = state.term === term && fits(namedBy(state)) ? namedBy(state) : null;
    const held = promised || (named !== null && state.ended?.id !== named.id);
    // A promise to another bid of the same candidate stays: only that one was given up.
    if (promised) state.promise = null;
    if (named !== null) {
      state.ended = { term, id: named.id };
      state.busyUntil = 0;
      // The time after a start stays: an older bid of the same candidate may have been promised more (rule 4).
    }
    // Only the release of the leadership it knows says who is next: one that comes late names nobody.
    if (held) {
      const believed = heir && heirFrom(heir.candidate, heir.forMs);
      state.heir = believed ? { candidate: believed.candidate, until: now + believed.forMs } : null;
      this.#tell(election, state);
    }
    return { kind: "release", held };
  }

  who(election: string, { now }: Now): WhoAnswer {
    const state = this.#look(election);
    const promised = state.promise !== null && isBound(state, now) ? shownPromise(state.promise, now) : null;
    const quietMs = Math.max(0, state.quietUntil - now);
    return { kind: "who", term: this.#term(state), change: state.change, promised, quietMs };
  }

  /** All that must be on disk, for a journal that is written anew. */
  records(): VoteRecord[] {
    return [...this.#states].map(([election, state]) => recordOf(election, state));
  }

  /** Elections it has taken part in. */
  elections(): string[] {
    return [...this.#states.keys()];
  }

  /** Rules 1, 2 and 4, as far as they are the same for votes and pre-votes. */
  #refused(state: VoterState, candidate: string, now: number): VoteAnswer | undefined {
    if (now < state.quietUntil) return { ...this.#no(state, "quiet"), leftMs: state.quietUntil - now };
    return this.#promisedOther(state, candidate, now) ?? this.#leftToHeir(state, candidate, now);
  }

  /** Rule 1. */
  #promisedOther(state: VoterState, candidate: string, now: number): VoteAnswer | undefined {
    const { promise } = state;
    if (promise === null || !isBound(state, now) || promise.bid.candidate === candidate) return undefined;
    const leftMs = promise.until - now;
    const promised = { term: promise.term, bid: promise.bid, leftMs };
    return { ...this.#no(state, "other"), promised, leftMs };
  }

  /** Rule 9: as if the question had been lost. What is not voted for harms no promise. */
  #leftToHeir(state: VoterState, candidate: string, now: number): VoteAnswer | undefined {
    const { heir } = state;
    if (heir === null || now >= heir.until || isHeir(candidate, heir.candidate)) return undefined;
    return { ...this.#no(state, "heir"), leftMs: heir.until - now };
  }

  /** Rules 1, 3 and 4. */
  #refusesBeat(state: VoterState, { term, bid, opened }: BeatRequest, at: Now): Refusal | undefined {
    const own = this.#term(state);
    if (term < own) return "older";
    if (state.ended?.term === term && state.ended.id === bid.id) return "ended";
    const { promise } = state;
    if (promise !== null && isBound(state, at.now) && promise.bid.candidate !== bid.candidate) return "other";
    const named = namedBy(state);
    if (at.now < state.quietUntil && (term !== state.term || named?.id !== bid.id)) return "quiet";
    if (term > own) return this.#isAhead(term, state, at) ? "ahead" : undefined;
    if (named?.id === bid.id && term === state.term) return undefined;
    // Another bid of this term, or a term up to which it has forgotten what it did: only the one that has opened it.
    return opened && state.leader === null ? undefined : "other";
  }

  /** Makes the bid the one that the disk names, if it is not yet. */
  #adopt(election: string, state: VoterState, request: BeatRequest, now: number): VoteRecord | undefined {
    const { term, bid, leaseMs } = request;
    const same = state.term === term && namedBy(state)?.id === bid.id;
    if (same && leaseMs <= state.leaseMs) return undefined;
    const keeps = state.term === term || isBound(state, now);
    state.leaseMs = Math.max(leaseMs, keeps ? state.leaseMs : 0);
    if (!same) {
      if (state.term !== term) state.vote = null;
      state.term = term;
      state.leader = bid;
    }
    return recordOf(election, state);
  }

  /** Rule 1. Returns the version of the value that it knows now. */
  #promise(election: string, state: VoterState, request: BeatRequest, now: number): number {
    const { term, bid, leaseMs, since, value, version } = request;
    const before = state.promise;
    // An older bid of the same candidate may have the longer promise.
    const until = Math.max(now + leaseMs, before?.until ?? 0);
    if (before !== null && before.bid.id === bid.id && before.term === term) {
      const revived = now >= before.until;
      before.until = until;
      const news = value !== undefined && version > before.version;
      if (news) Object.assign(before, { value, version });
      if (news || revived) this.#tell(election, state);
      return before.version;
    }
    const known = value === undefined ? -1 : version;
    state.promise = { term, bid, until, version: known, value: value ?? "", since };
    this.#tell(election, state);
    return known;
  }

  #isAhead(term: bigint, state: VoterState, { wall }: Now): boolean {
    const clock = BigInt(Math.max(0, Math.floor(wall)));
    // Terms begin above the seed, which was the clock of another voter, perhaps a wrong one.
    return [this.#term(state), this.#seed, clock].every((known) => term > known + FAR_AHEAD);
  }

  #term(state: VoterState): bigint {
    return state.term > this.#floor ? state.term : this.#floor;
  }

  #no(state: VoterState, why: Refusal, detail?: string): VoteAnswer {
    return { kind: "vote", yes: false, term: this.#term(state), why, ...(detail && { detail }) };
  }

  #noBeat(state: VoterState, why: Refusal, detail?: string): BeatAnswer {
    return { kind: "beat", yes: false, term: this.#term(state), why, version: -1, ...(detail && { detail }) };
  }

  /** Nothing is kept of elections that are only asked about. */
  #look(election: string): VoterState {
    return this.#states.get(election) ?? freshState();
  }

  #keep(election: string, state: VoterState): VoterState | undefined {
    if (this.#states.has(election)) return state;
    if (this.#states.size >= this.#most) return undefined;
    this.#states.set(election, state);
    return state;
  }

  #tell(election: string, state: VoterState): void {
    state.change++;
    this.#changed(election);
  }
}

function aheadOf(term: bigint): string {
  return `term ${term} is more than a day ahead of this voter's clock and of its own term`;
}

function tooMany(most: number): string {
  return `this voter keeps ${most} elections already`;
}
