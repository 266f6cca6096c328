/** What one process knows of an election's leader: the last report of each voter, kept up to date by waiting questions. */
import { StopSource } from "../../kit/stop.js";
import type { Stop } from "../../kit/stop.js";
import { deferred, settlesWithin, sleep } from "../../kit/wait.js";
import type { Clock } from "../../seam/clock.js";
import type { Promised, WhoAnswer } from "./messages.js";
import { blockingOf, majorityOf } from "./quorum.js";
import type { Voters } from "./voters.js";

/** How long a voter may leave a question unanswered while nothing changes. */
const WAIT_MS = 10_000;
const AGAIN_MS = 100;
const LONGEST_AGAIN_MS = 1_000;

interface Report {
  readonly answer: WhoAnswer;
  /** When it came. */
  readonly at: number;
}

/** `undefined`: the reports do not tell. */
export type Sight = { readonly promised: Promised | null } | undefined;

export class View {
  readonly #voters: Voters;
  readonly #clock: Clock;
  readonly #election: string;
  readonly #attemptMs: number;
  readonly #reports = new Map<string, Report>();
  readonly #stop = new StopSource();
  #news = deferred<void>();
  /** Why a voter could not be asked, the last time. */
  error: unknown;

  constructor(voters: Voters, clock: Clock, election: string, attemptMs: number) {
    this.#voters = voters;
    this.#clock = clock;
    this.#election = election;
    this.#attemptMs = attemptMs;
  }

  start(): void {
    for (const voter of this.#voters.names) void this.#follow(voter);
  }

  stop(): void {
    this.#stop.stop();
    this.#tell();
  }

  /** Who leads, as a majority of voters reports it. */
  sight(): Sight {
    const now = this.#clock.now();
    const count = this.#voters.names.length;
    const byBid = new Map<string, Promised[]>();
    let vacant = 0;
    for (const { answer, at } of this.#reports.values()) {
      const { promised, quietMs, unfit } = answer;
      if (unfit !== undefined) continue;
      if (promised === null) vacant += now >= at + quietMs ? 1 : 0;
      else if (now < at + promised.leftMs)
        byBid.set(promised.bid.id, [...(byBid.get(promised.bid.id) ?? []), promised]);
    }
    for (const same of byBid.values()) {
      if (same.length < majorityOf(count)) continue;
      return { promised: same.reduce((best, one) => (one.version > best.version ? one : best)) };
    }
    return vacant >= blockingOf(count) ? { promised: null } : undefined;
  }

  /** When the earliest promise that is reported ends; asking again before that shows nothing new. */
  staleAt(): number {
    const now = this.#clock.now();
    const ends = [...this.#reports.values()]
      .map(({ answer, at }) => at + (answer.promised?.leftMs ?? answer.quietMs))
      .filter((end) => end > now);
    return Math.min(...ends, Number.POSITIVE_INFINITY);
  }

  /** Waits for news, at most so long. */
  async changed(withinMs: number, stop: Stop): Promise<void> {
    await settlesWithin(this.#clock, withinMs, stop, this.#news.promise);
  }

  /** Asks all of them now. Resolves when they have answered, or could not. */
  async refresh(): Promise<void> {
    const asked = this.#voters.names.map(async (voter) => {
      try {
        this.#report(voter, await this.#ask(voter, -1, 0));
      } catch (error) {
        this.error = error;
      }
    });
    await Promise.all(asked);
  }

  async #follow(voter: string): Promise<void> {
    let change = -1;
    let failures = 0;
    while (!this.#stop.aborted) {
      try {
        const answer = await this.#ask(voter, change, WAIT_MS);
        if (this.#stop.aborted) return;
        this.#report(voter, answer);
        change = answer.change;
        failures = 0;
        if (answer.unfit !== undefined) await sleep(this.#clock, LONGEST_AGAIN_MS, this.#stop);
      } catch (error) {
        this.error = error;
        change = -1;
        this.#reports.delete(voter);
        this.#tell();
        const delay = Math.min(LONGEST_AGAIN_MS, AGAIN_MS * 2 ** Math.min(failures++, 4));
        await sleep(this.#clock, delay * (0.5 + this.#clock.random()), this.#stop);
      }
    }
  }

  #ask(voter: string, change: number, waitMs: number): Promise<WhoAnswer> {
    const request = { kind: "who", election: this.#election, change, waitMs } as const;
    return this.#voters.ask(voter, request, waitMs + this.#attemptMs);
  }

  #report(voter: string, answer: WhoAnswer): void {
    this.#reports.set(voter, { answer, at: this.#clock.now() });
    this.#tell();
  }

  #tell(): void {
    const news = this.#news;
    this.#news = deferred();
    news.resolve();
  }
}
