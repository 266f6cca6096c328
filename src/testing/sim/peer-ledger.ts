/** What voters have said, over all their lives: never two votes of one voter in one term, and which records are decided. */
import { majorityOf } from "../../backends/raft/quorum.js";
import type { Answer, Request } from "../../backends/raft/transport/wire.js";
import type { Monitor } from "./monitor.js";

export class PeerLedger {
  readonly #said = new Map<string, string>();
  /** How often each voter has lost its disk. */
  readonly #disks = new Map<string, number>();
  readonly #accepted = new Map<string, Set<string>>();
  readonly #decided = new Set<string>();

  constructor(
    readonly monitor: Monitor,
    readonly voters: number,
    /** Told once of every text that a majority has accepted. */
    readonly wrote: (text: string) => void,
  ) {}

  /** It may vote again in a term that nobody else has seen (ADR 042). */
  lost(voter: string): void {
    this.#disks.set(voter, (this.#disks.get(voter) ?? 0) + 1);
  }

  /** A voter answers. Whether anybody hears it does not matter. */
  answered(voter: string, request: Request, answer: Answer): void {
    if (request.kind === "vote" && answer.kind === "vote" && answer.yes)
      this.#once("voted for", voter, request.election, request.term, request.bid.id);
    if (request.kind === "beat" && answer.kind === "beat" && answer.yes && !request.opened)
      this.#once("acknowledged", voter, request.election, request.term, request.bid.id);
    if (answer.kind !== "register" || !("key" in request) || answer.accepted === null) return;
    const { ballot, version, text } = answer.accepted;
    if (request.kind !== "accept" || answer.yes) this.#accept(voter, request.key, ballot, version, text);
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
