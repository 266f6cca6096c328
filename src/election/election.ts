/**
 * A named contest, and one candidate's part in it.
 *
 * This does not make it impossible that two processes *act* at once: a process
 * can be stopped between looking at `term.held` and acting on it. What is
 * promised is that no two candidates get `true` from `term.held` at the same
 * instant (as far as the backend's guarantees reach), and that every term has a
 * token by which a resource can refuse an earlier leader.
 */
import type { Backend, Leader } from "../seam/backend.js";
import { Backoff } from "../kit/backoff.js";
import { Candidate } from "./candidate.js";
import { ConclaveError, invalid } from "../kit/errors.js";
import type { EventName, Listener } from "../api/events.js";
import { checkCall, checkEvent } from "../kit/known-options.js";
import { checkElectionOptions, EVENTS } from "./known-options.js";
import { LeaderFeed, observeLeaders } from "./observe.js";
import type { ElectionOptions } from "../api/options.js";
import type { Standee, Term, TransferOptions, TransferResult } from "../api/term.js";
import type { Timing } from "../law/timing.js";
import type { Work } from "./work.js";
import { bounded } from "../kit/wait.js";

/** One candidate in one election. */
export class Election implements AsyncDisposable {
  readonly #candidate: Candidate;
  #feed: LeaderFeed | undefined;

  constructor(options: ElectionOptions) {
    checkElectionOptions("an election", options);
    this.#candidate = new Candidate(options);
  }

  /** Name of the contest. */
  get name(): string {
    return this.#candidate.election;
  }

  /** This candidate's id: never used before, never used again. */
  get candidate(): string {
    return this.#candidate.candidate;
  }

  /** Every duration of this election, resolved. */
  get timing(): Timing {
    return this.#candidate.timing;
  }

  /** Where the election takes place. */
  get backend(): Backend {
    return this.#candidate.backend;
  }

  /** Calls `listener` for each event from now on. Returns the way to stop. Listeners cannot disturb the election. */
  on<E extends EventName>(event: E, listener: Listener<E>): () => void {
    const { events } = this.#candidate;
    checkEvent("an election", event, EVENTS);
    const off = events.on(event, listener);
    if (event !== "leader" || this.#candidate.closed) return off;
    const feed = (this.#feed ??= new LeaderFeed(events, (signal) => this.observe({ signal })));
    void this.#candidate.track(feed.start());
    return () => {
      off();
      if (events.count("leader") === 0) feed.stop();
    };
  }

  /** Whether this candidate leads at this very moment. */
  get leading(): boolean {
    return this.#candidate.tenure?.held ?? false;
  }

  /** The term this candidate is in, if any. */
  get term(): Term | undefined {
    return this.#candidate.tenure?.term;
  }

  /**
   * Campaigns, runs `work` while leading, and campaigns again, until `signal`
   * aborts or the election is closed; then the work is stopped and leadership
   * given up, in that order. Errors are events, never a rejection. `work` that
   * returns or throws ends its term; the next term begins only after the last
   * one's work has settled.
   */
  async run(work: Work, options: { readonly signal?: AbortSignal } = {}): Promise<void> {
    // Otherwise every term would begin and fail.
    if (typeof work !== "function") throw invalid(`run() takes a function, the work; got ${typeof work}`);
    checkCall("run()", options);
    return this.#candidate.run(work, options.signal);
  }

  /**
   * Campaigns and waits for leadership. Passing faults of the store are waited
   * out; permanent ones (credentials, permissions, invalid options) reject, and
   * so does the signal. The term is yours to `resign()`.
   */
  async campaign(options: { readonly signal?: AbortSignal } = {}): Promise<Term> {
    checkCall("campaign()", options);
    return (await this.#candidate.campaign(options.signal)).term;
  }

  /** One attempt: the term, or `null` if someone else leads or we are not ready. Rejects if the store cannot be asked. */
  async tryCampaign(options: { readonly signal?: AbortSignal } = {}): Promise<Term | null> {
    checkCall("tryCampaign()", options);
    return (await this.#candidate.tryCampaign(options.signal))?.term ?? null;
  }

  /**
   * Accepts that the store's tokens begin anew, below those seen so far: the next
   * campaign may lead with a lower one. For operators, after a `token-regression`
   * and once no fenced resource remembers the old tokens; without that, resources
   * refuse the new leader.
   */
  acceptRegression(): void {
    this.#candidate.acceptRegression();
  }

  /** Who leads now, by the store; `null` = nobody. Rejects if the store cannot be asked. */
  async leader(options: { readonly signal?: AbortSignal } = {}): Promise<Leader | null> {
    checkCall("leader()", options);
    const stop = this.#candidate.stopSignal(options.signal);
    const { attemptMs, retryMs } = this.timing;
    const ask = async (signal: AbortSignal): Promise<Leader | null> => {
      for await (const leader of this.backend.observe(this.name, { signal, pollMs: retryMs, attemptMs })) {
        if (leader !== null) this.#candidate.floor.seen(leader.token);
        return leader;
      }
      throw stop.signal.reason ?? new ConclaveError("unavailable", "the store did not say who leads");
    };
    return this.#candidate.track(
      bounded(this.#candidate.clock, 2 * attemptMs, stop.signal, "asking who leads", ask).finally(
        stop.unlink,
      ),
    );
  }

  /**
   * Who stands in this election: those with a priority or `roster: true`, highest
   * first, the leader among them. Who has been silent for a ttl since it was seen
   * is left out: a candidate that is on the roster itself sees all the time, another
   * only when it asks, and its first answer is the record as it is.
   * Rejects if the store cannot be asked or keeps no records.
   */
  async candidates(options: { readonly signal?: AbortSignal } = {}): Promise<readonly Standee[]> {
    checkCall("candidates()", options);
    const stop = this.#candidate.stopSignal(options.signal);
    return this.#candidate.track(this.#candidate.candidates(stop.signal).finally(stop.unlink));
  }

  /**
   * Follows who leads: the present leader first (`null` = nobody), then every
   * change it gets to see. A slow reader skips leaders, never sees an older one
   * after a newer, unless the store itself was wiped or restored: then an `error`
   * event of code `token-regression` says so first. Store faults are waited out.
   * Ends when `signal` aborts or the election is closed.
   */
  async *observe(
    options: { readonly signal?: AbortSignal } = {},
  ): AsyncGenerator<Leader | null, void, undefined> {
    checkCall("observe()", options);
    const candidate = this.#candidate;
    const stop = candidate.stopSignal(options.signal);
    const { attemptMs, retryMs, ttlMs } = this.timing;
    try {
      yield* observeLeaders({
        follow: () => this.backend.observe(this.name, { signal: stop.signal, pollMs: retryMs, attemptMs }),
        clock: candidate.clock,
        backoff: new Backoff(candidate.clock, retryMs / 8, ttlMs / 2),
        signal: stop.signal,
        seen: (token) => candidate.floor.seen(token),
        failed: (error) => candidate.fail("observing", error),
      });
    } finally {
      stop.unlink();
    }
  }

  /**
   * Ends this candidate's term, if it has one: stops the work, then hands over.
   * `run()` campaigns again after a pause. From inside the work itself use
   * `term.resign()`: this one waits for the work. `why` is what the log and the
   * history say about the end; default: that this was called.
   */
  resign(why?: string): Promise<void> {
    // As a listener it may be given an event.
    return this.#candidate.resign(typeof why === "string" ? why : undefined);
  }

  /**
   * Hands this candidate's term over to another one: {@link Term.transfer}. From
   * inside the work itself start `term.transfer()` and return: this waits for the work.
   */
  async transfer(to: string, options: TransferOptions = {}): Promise<TransferResult> {
    const { term } = this;
    if (term === undefined)
      throw new ConclaveError(
        "state",
        `this candidate does not lead "${this.name}": only its leader can hand it over`,
      );
    return term.transfer(to, options);
  }

  /**
   * Ends everything: withdraws, or stops the work and gives leadership up.
   * Afterwards nothing of this election is left: no timer, no listener, no
   * request. Takes at most `drainMs` and, if the work does not stop, one ttl: do
   * not await it inside the work itself. For a term from `campaign()` this is
   * its owner's word that the work has stopped.
   */
  close(): Promise<void> {
    return this.#candidate.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
