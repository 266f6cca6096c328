/**
 * What voters were asked and have said, over all their lives: never two votes of
 * one voter in one term, no promise broken, and which records are decided.
 */
import { blockingOf, majorityOf } from "../../backends/raft/quorum.js";
import type { BeatRequest, ReleaseRequest, VoteRequest } from "../../backends/raft/messages.js";
import type { Answer, Request } from "../../backends/raft/transport/wire.js";
import type { Monitor } from "./monitor.js";
import { ELECTION } from "./store-parts.js";

/** Whom a voter has promised, by its own monotonic clock. */
interface Given {
  readonly term: bigint;
  readonly id: string;
  readonly candidate: string;
  readonly until: number;
}

export class PeerLedger {
  readonly #said = new Map<string, string>();
  /** How often each voter has lost its disk. */
  readonly #disks = new Map<string, number>();
  readonly #promises = new Map<string, Given>();
  /** When each voter was last told of the end of a bid, or of all bids of a candidate. */
  readonly #releases = new Map<string, number>();
  /** The highest term that each voter was asked to vote for or to acknowledge, and terms whose end it was told. */
  readonly #terms = new Map<string, bigint>();
  readonly #ended = new Map<bigint, Set<string>>();
  readonly #accepted = new Map<string, Set<string>>();
  readonly #decided = new Set<string>();

  constructor(
    readonly monitor: Pick<Monitor, "violate">,
    readonly voters: number,
    /** Told once of every text that a majority has accepted. */
    readonly wrote: (text: string) => void,
  ) {}

  /** It may vote again in a term that nobody else has seen (ADR 042). */
  lost(voter: string): void {
    this.#disks.set(voter, (this.#disks.get(voter) ?? 0) + 1);
    for (const key of this.#promises.keys()) if (key.startsWith(`${voter} `)) this.#promises.delete(key);
  }

  /** Whether a majority may still be for this term, as far as requests tell. */
  holds(token: bigint): boolean {
    const ended = this.#ended.get(token);
    const voters = [...this.#terms].filter(([voter, term]) => term > token || ended?.has(voter));
    return voters.length < blockingOf(this.voters);
  }

  /** A request arrives. Whether it is answered does not matter. */
  asked(voter: string, request: Request, at: number): void {
    if (request.kind === "release") this.#released(voter, request, at);
    if ((request.kind !== "vote" && request.kind !== "beat") || request.election !== ELECTION) return;
    const { term } = request;
    if (term > (this.#terms.get(voter) ?? -1n)) this.#terms.set(voter, term);
  }

  /** A voter answers what it was asked at that time of its clock. Whether anybody hears it does not matter. */
  answered(voter: string, request: Request, answer: Answer, at: number): void {
    if (request.kind === "vote" && answer.kind === "vote" && answer.yes) {
      this.#once("voted for", voter, request.election, request.term, request.bid.id);
      this.#keeps(voter, request, at);
    }
    if (request.kind === "beat" && answer.kind === "beat" && answer.yes) {
      if (!request.opened) this.#once("acknowledged", voter, request.election, request.term, request.bid.id);
      this.#keeps(voter, request, at);
      this.#promise(voter, request, at);
    }
    if (answer.kind !== "register" || !("key" in request) || answer.accepted === null) return;
    const { ballot, version, text } = answer.accepted;
    if (request.kind !== "accept" || answer.yes) this.#accept(voter, request.key, ballot, version, text);
  }

  #released(voter: string, { election, term, candidate, id }: ReleaseRequest, at: number): void {
    this.#releases.set(`${voter} ${election} ${term} ${id ?? candidate}`, at);
    if (election === ELECTION) this.#ended.set(term, (this.#ended.get(term) ?? new Set()).add(voter));
    const key = `${voter} ${election}`;
    const given = this.#promises.get(key);
    if (given?.term === term && given.candidate === candidate && (id === undefined || id === given.id))
      this.#promises.delete(key);
  }

  /** Rules 1 and 4. */
  #keeps(voter: string, { kind, election, term, bid }: VoteRequest | BeatRequest, at: number): void {
    const given = this.#promises.get(`${voter} ${election}`);
    if (given === undefined || at >= given.until || given.candidate === bid.candidate) return;
    this.monitor.violate(
      "promise",
      `${voter} said yes to a ${kind} in term ${term} of ${election} while its promise of term ${given.term} lasted`,
    );
  }

  #promise(voter: string, { election, term, bid, leaseMs }: BeatRequest, at: number): void {
    const key = `${voter} ${election}`;
    const before = this.#promises.get(key);
    // Answers may overtake each other: what a later request brought counts.
    if (before !== undefined && before.term > term) return;
    // Given back while the answer waited for the disk, and with it what it stood in for: an older bid of this candidate.
    const released = [bid.id, bid.candidate].map((who) => this.#releases.get(`${key} ${term} ${who}`) ?? -1);
    if (Math.max(...released) >= at) {
      if (before?.candidate === bid.candidate && before.term < term) this.#promises.delete(key);
      return;
    }
    const until = Math.max(at + leaseMs, before?.until ?? 0);
    this.#promises.set(key, { term, id: bid.id, candidate: bid.candidate, until });
  }

  #once(what: string, voter: string, election: string, term: bigint, bid: string): void {
    const key = `${what} ${voter} ${this.#disks.get(voter) ?? 0} ${election} ${term}`;
    const before = this.#said.get(key);
    if (before !== undefined && before !== bid)
      this.monitor.violate("two-votes", `${voter} ${what} two bids in term ${term} of ${election}`);
    this.#said.set(key, bid);
  }

  #accept(voter: string, key: string, ballot: bigint, version: bigint, text: string): void {
    const write = `${key} ${version}`;
    if (this.#decided.has(write)) return;
    const round = `${key} ${ballot}`;
    const voters = this.#accepted.get(round) ?? new Set();
    this.#accepted.set(round, voters.add(voter));
    if (voters.size < majorityOf(this.voters)) return;
    this.#decided.add(write);
    this.wrote(text);
  }
}
