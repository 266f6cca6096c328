/** The leader's side of a term: rules 6 to 8 of ADR 042. It beats when it is asked to; it keeps no timer. */
import { readClocks } from "../../kit/clock.js";
import { ConclaveError } from "../../kit/errors.js";
import { untilAborted } from "../../kit/wait.js";
import type { CallOptions, Extension, Heir, Hold, ReleaseOptions } from "../../seam/backend.js";
import type { Clock, Reading } from "../../seam/clock.js";
import type { BeatAnswer, Bid } from "./messages.js";
import { blockingOf, gather, majorityOf } from "./quorum.js";
import type { Voters } from "./voters.js";
import { askAll } from "./voters.js";

export interface LeaderParts {
  readonly voters: Voters;
  readonly clock: Clock;
  readonly election: string;
  readonly term: bigint;
  readonly bid: Bid;
  readonly leaseMs: number;
  readonly value: string;
  /** Longest a request may take. */
  readonly attemptMs: number;
}

/** Refusals that last as long as the term would. */
function isFinal({ yes, why }: BeatAnswer): boolean {
  return !yes && (why === "older" || why === "ended");
}

export class Leader {
  readonly #parts: LeaderParts;
  readonly #since: number;
  /** The newest value that each voter has acknowledged. */
  readonly #known = new Map<string, number>();
  #value: string;
  #version = 0;
  #opened = false;
  #over = false;

  constructor(parts: LeaderParts) {
    this.#parts = parts;
    this.#value = parts.value;
    this.#since = parts.clock.wall();
  }

  get term(): bigint {
    return this.#parts.term;
  }

  /** Rule 6: the term begins with a majority that acknowledged a BEAT sent after the election. */
  async open(): Promise<Reading | "lost"> {
    const opened = await this.beat();
    if (opened !== "lost") this.#opened = true;
    return opened;
  }

  /** Rule 7: sends one BEAT to all. The lease counts from the reading that is returned. Throws = not known. */
  async beat(): Promise<Reading | "lost"> {
    if (this.#over) return "lost";
    const { voters, clock, election, term, bid, leaseMs, attemptMs } = this.#parts;
    const [version, value] = [this.#version, this.#value];
    const count = voters.names.length;
    const asked = readClocks(clock);
    const answers = askAll(
      voters,
      (voter) => ({
        kind: "beat" as const,
        election,
        term,
        bid,
        leaseMs,
        opened: this.#opened,
        version,
        since: this.#since,
        ...((this.#known.get(voter) ?? -1) < version && { value }),
      }),
      attemptMs,
    );
    for (const [voter, answer] of answers)
      answer.then(
        (told) => this.#learn(voter, told),
        () => {},
      );
    const verdict = await gather(answers, (told) => {
      const all = [...told.values()];
      if (all.filter(({ yes }) => yes).length >= majorityOf(count)) return "kept" as const;
      // Rule 8: no majority is left for this term.
      if (all.filter(isFinal).length >= blockingOf(count)) return "lost" as const;
      const no = all.filter(({ yes }) => !yes);
      return no.length >= blockingOf(count) ? ({ refused: no } as const) : undefined;
    });
    if (this.#over || verdict === "lost") return "lost";
    if (verdict === "kept") return asked;
    throw new ConclaveError(
      "unavailable",
      `a majority of voters did not acknowledge term ${term}: ${why(verdict.refused)}`,
    );
  }

  async proclaim(value: string): Promise<Reading | "lost"> {
    this.#value = value;
    this.#version++;
    return this.beat();
  }

  /** No BEAT is sent after this. Resolves when a majority knows. */
  async release(heir?: Heir): Promise<void> {
    this.#over = true;
    const { voters, election, term, bid, attemptMs } = this.#parts;
    const request = { kind: "release", election, term, candidate: bid.candidate, id: bid.id, heir } as const;
    const majority = majorityOf(voters.names.length);
    await gather(askAll(voters, request, attemptMs), (answers) => {
      const told = [...answers.values()].filter(({ unfit }) => unfit === undefined);
      return told.length >= majority ? true : undefined;
    });
  }

  #learn(voter: string, { yes, version }: BeatAnswer): void {
    if (yes) this.#known.set(voter, version);
  }
}

function why(refused: readonly BeatAnswer[]): string {
  return refused.map(({ why: reason = "no", detail }) => detail ?? reason).join(", ");
}

/** A term of a {@link Leader}, as core sees it. */
export class RaftHold implements Hold {
  readonly token: bigint;
  readonly asked: Reading;
  readonly ttlMs: number;
  readonly #leader: Leader;

  constructor(leader: Leader, asked: Reading, ttlMs: number) {
    this.#leader = leader;
    this.token = leader.term;
    this.asked = asked;
    this.ttlMs = ttlMs;
  }

  async renew({ signal }: CallOptions): Promise<Extension | "lost"> {
    signal.throwIfAborted();
    return extension(await untilAborted(signal, this.#leader.beat()));
  }

  async proclaim(value: string, { signal }: CallOptions): Promise<Extension | "lost"> {
    signal.throwIfAborted();
    return extension(await untilAborted(signal, this.#leader.proclaim(value)));
  }

  async release({ signal, heir }: ReleaseOptions): Promise<void> {
    signal.throwIfAborted();
    await untilAborted(signal, this.#leader.release(heir));
  }
}

function extension(answer: Reading | "lost"): Extension | "lost" {
  return answer === "lost" ? "lost" : { asked: answer };
}
