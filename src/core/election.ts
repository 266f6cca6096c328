/**
 * A named contest, and one candidate's part in it.
 *
 * This does not make it impossible that two processes *act* at once: a process
 * can be stopped between looking at `term.held` and acting on it. What is
 * promised is that no two candidates get `true` from `term.held` at the same
 * instant (as far as the backend's guarantees reach), and that every term has a
 * token by which a resource can refuse the leader of the past.
 */
import { Admission } from "./admission.js";
import type { Backend, Candidacy, Hold, Leader } from "./backend.js";
import { Backoff } from "./backoff.js";
import type { Clock } from "./clock.js";
import { systemClock } from "./clock.js";
import type { Deadline } from "./deadline.js";
import { ConclaveError, describe, invalid, isRetriable } from "./errors.js";
import { Emitter } from "./events.js";
import type { EventName, Listener, Logger } from "./events.js";
import { Halt } from "./halt.js";
import type { Stop } from "./halt.js";
import { Keeper } from "./keeper.js";
import { checkId, checkName, checkValue, defaultId } from "./names.js";
import { LeaderFeed, observeLeaders } from "./observe.js";
import { Term } from "./term.js";
import { resolveTiming } from "./timing.js";
import type { Timing, TimingOptions } from "./timing.js";
import { TokenFloor } from "./token-floor.js";
import { serve } from "./work.js";
import type { Work } from "./work.js";
import { bounded, onAbort, sleep, untilAborted } from "./waiting.js";

export interface ElectionOptions extends TimingOptions {
  /** Name of the contest: candidates with the same name on the same store stand against each other. */
  readonly name: string;
  readonly backend: Backend;
  /** Readable part of the candidate's id; a random part is always added. Default: the host's name. */
  readonly id?: string | undefined;
  /** What observers see while this candidate leads. Default: the candidate's id. */
  readonly value?: string | undefined;
  /** The candidate does not stand before this says `true`. Asked again after `retryMs`. */
  readonly ready?: ((options: { signal: AbortSignal }) => boolean | Promise<boolean>) | undefined;
  readonly logger?: Logger | undefined;
  /** Time and chance. For tests. */
  readonly clock?: Clock | undefined;
  /** Whether `close()` closes the backend too. Default `false`: who opens, closes. */
  readonly closeBackend?: boolean | undefined;
}

type State =
  | { readonly kind: "idle" }
  | { readonly kind: "standing" }
  | { readonly kind: "leading"; readonly keeper: Keeper };

export class Election implements AsyncDisposable {
  readonly name: string;
  /** This candidate's id: never used before, never used again. */
  readonly candidate: string;
  readonly timing: Timing;
  readonly backend: Backend;
  readonly #clock: Clock;
  readonly #ready: ElectionOptions["ready"];
  readonly #closeBackend: boolean;
  readonly #candidacy: Candidacy;
  readonly #events: Emitter;
  readonly #floor = new TokenFloor();
  readonly #admission: Admission;
  #feed: LeaderFeed | undefined;
  readonly #closing = new Halt();
  #running: Set<Promise<unknown>> | undefined;
  #state: State = { kind: "idle" };
  #run = false;
  /** From the call on, not from the first request: `ready()` and pauses between attempts are standing too. */
  #campaigning = false;
  #closed: Promise<void> | undefined;
  /** When this candidate began to stand for the office it is waiting for. */
  #standingSince = 0;

  constructor(options: ElectionOptions) {
    this.name = checkName(options.name);
    this.backend = checkBackend(options.backend);
    this.#clock = options.clock ?? systemClock;
    this.timing = resolveTiming(options, options.backend.timing ?? {}, options.backend.guarantees);
    this.candidate = `${checkId(options.id ?? defaultId())}-${this.#clock.uniqueId()}`;
    const value = checkValue(options.value ?? this.candidate);
    const { ttlMs, retryMs, attemptMs } = this.timing;
    this.#candidacy = { election: this.name, candidate: this.candidate, value, ttlMs, retryMs, attemptMs };
    this.#ready = options.ready;
    this.#closeBackend = options.closeBackend ?? false;
    this.#events = new Emitter(this.name, this.candidate, options.logger);
    this.#admission = new Admission(this.#clock, this.timing, this.#events, this.#floor);
  }

  /** Calls `listener` for each event from now on. Returns the way to stop. Listeners cannot disturb the election. */
  on<E extends EventName>(event: E, listener: Listener<E>): () => void {
    const off = this.#events.on(event, listener);
    if (event !== "leader" || this.#closing.aborted) return off;
    const feed = (this.#feed ??= new LeaderFeed(this.#events, (signal) => this.observe({ signal })));
    feed.start();
    return () => {
      off();
      if (this.#events.count("leader") === 0) void feed.stop();
    };
  }

  /** Whether this candidate leads at this very moment. */
  get leading(): boolean {
    return this.term?.held ?? false;
  }

  /** The term this candidate is in, if any. */
  get term(): Term | undefined {
    return this.#state.kind === "leading" ? this.#state.keeper.term : undefined;
  }

  /**
   * Stands, works, and stands again, for ever, until `signal` aborts or the
   * election is closed; then the work is stopped and the office given up, in
   * that order. Errors are events, never a rejection. `work` that returns or
   * throws ends its term; the next begins only after the last one's work has
   * settled.
   */
  async run(work: Work, options: { readonly signal?: AbortSignal } = {}): Promise<void> {
    // Else it would fail in office, again and again.
    if (typeof work !== "function") throw invalid(`run() takes a function, the work; got ${typeof work}`);
    this.#assertFree();
    this.#run = true;
    const stop = this.#stopSignal(options.signal);
    const running = this.#runUntil(work, stop.signal).finally(() => {
      this.#run = false;
      stop.unlink();
    });
    return this.#track(running);
  }

  /**
   * Stands and waits for office. Passing faults of the store are waited out;
   * permanent ones (credentials, permissions, invalid options) reject, and so
   * does the signal. The term is yours to `resign()`.
   */
  async campaign(options: { readonly signal?: AbortSignal } = {}): Promise<Term> {
    this.#assertFree();
    this.#campaigning = true;
    const stop = this.#stopSignal(options.signal);
    return this.#track(
      this.#campaign(stop.signal, false)
        .then((keeper) => keeper.term)
        .finally(() => this.#stood(stop.unlink)),
    );
  }

  /** One attempt: the term, or `null` if someone else leads or we are not ready. Rejects if the store cannot be asked. */
  async tryCampaign(options: { readonly signal?: AbortSignal } = {}): Promise<Term | null> {
    this.#assertFree();
    this.#campaigning = true;
    const stop = this.#stopSignal(options.signal);
    return this.#track(this.#try(stop.signal).finally(() => this.#stood(stop.unlink)));
  }

  /**
   * Accepts that the store's tokens begin anew, below those seen so far: the next
   * campaign may lead with a lower one. For operators, after a `token-regression`
   * and once no fenced resource remembers the old tokens; without that, resources
   * refuse the new leader.
   */
  acceptRegression(): void {
    this.#floor.forget();
    this.#events.log("warn", "a lower token than those seen so far is accepted from now on");
  }

  /** Who leads now, by the store; `null` = nobody. Rejects if the store cannot be asked. */
  async leader(options: { readonly signal?: AbortSignal } = {}): Promise<Leader | null> {
    const stop = this.#stopSignal(options.signal);
    const { attemptMs, retryMs } = this.timing;
    const ask = async (signal: AbortSignal): Promise<Leader | null> => {
      for await (const leader of this.backend.observe(this.name, { signal, pollMs: retryMs, attemptMs })) {
        if (leader !== null) this.#floor.seen(leader.token);
        return leader;
      }
      throw stop.signal.reason ?? new ConclaveError("unavailable", "the store did not say who leads");
    };
    return this.#track(
      bounded(this.#clock, 2 * attemptMs, stop.signal, "asking who leads", ask).finally(stop.unlink),
    );
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
    const stop = this.#stopSignal(options.signal);
    const { attemptMs, retryMs, ttlMs } = this.timing;
    try {
      yield* observeLeaders({
        follow: () => this.backend.observe(this.name, { signal: stop.signal, pollMs: retryMs, attemptMs }),
        clock: this.#clock,
        backoff: new Backoff(this.#clock, retryMs / 8, ttlMs / 2),
        signal: stop.signal,
        seen: (token) => this.#floor.seen(token),
        failed: (error) => this.#fail("observing", error),
      });
    } finally {
      stop.unlink();
    }
  }

  /**
   * Ends this candidate's term, if it has one: stops the work, then hands over.
   * `run()` stands again after a pause. From inside the work itself use
   * `term.resign()`: this one waits for the work.
   */
  async resign(): Promise<void> {
    if (this.#state.kind === "leading") await this.#state.keeper.endNow("resigned", "resign() was called");
  }

  /**
   * Ends everything: withdraws, or stops the work and gives the office up.
   * Afterwards nothing of this election is left: no timer, no listener, no
   * request. Takes at most `drainMs` and, if the work does not stop, one ttl: do
   * not await it inside the work itself. For a term from `campaign()` this is
   * its owner's word that the work has stopped.
   */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    const leading = this.#state.kind === "leading" ? this.#state.keeper : undefined;
    const ending = leading?.endNow("closed", "the election was closed");
    this.#closing.halt(new ConclaveError("state", `election "${this.name}" is closed`));
    await ending;
    // What is stopped may leave something to be given back.
    while (this.#running !== undefined) await Promise.allSettled([...this.#running]);
    await this.#feed?.stop();
    if (this.#closeBackend) await this.backend[Symbol.asyncDispose]();
  }

  async #runUntil(work: Work, stop: AbortSignal): Promise<void> {
    const { retryMs, ttlMs } = this.timing;
    const backoff = new Backoff(this.#clock, retryMs, ttlMs);
    while (!stop.aborted) {
      const keeper = await this.#campaign(stop, true).catch(() => undefined);
      if (keeper === undefined) continue; // only an aborted signal gets here
      const outcome = await serve(keeper, work, {
        clock: this.#clock,
        stop,
        patienceMs: this.timing.drainMs,
        stuck: (error) => this.#fail("working", error),
      });
      if (outcome.kind === "failed") this.#fail("working", outcome.error);
      else backoff.reset();
      await sleep(this.#clock, backoff.next(), stop);
    }
  }

  /** Stands until in office. Rejects only when `stop` aborts or, unless `forever`, on a permanent error. */
  async #campaign(stop: AbortSignal, forever: boolean): Promise<Keeper> {
    const { retryMs, ttlMs } = this.timing;
    const backoff = new Backoff(this.#clock, retryMs / 8, ttlMs / 2);
    this.#standingSince = this.#clock.now();
    for (;;) {
      stop.throwIfAborted();
      try {
        if (await this.#isReady(stop)) {
          const keeper = await this.#stand(true, stop);
          if (keeper !== null) return keeper;
        } else {
          await sleep(this.#clock, retryMs, stop);
        }
      } catch (error) {
        stop.throwIfAborted();
        const permanent = !isRetriable(error);
        if (permanent && !forever) throw error;
        this.#fail("standing", error);
        await sleep(this.#clock, permanent ? backoff.permanent() : backoff.next(), stop);
      }
    }
  }

  async #try(stop: AbortSignal): Promise<Term | null> {
    const limitMs = 2 * this.timing.attemptMs;
    this.#standingSince = this.#clock.now();
    if (!(await this.#isReady(stop))) return null;
    let standing: Promise<Keeper | null> | undefined;
    try {
      const stand = (signal: AbortSignal): Promise<Keeper | null> => (standing = this.#stand(false, signal));
      return (await bounded(this.#clock, limitMs, stop, "standing", stand))?.term ?? null;
    } catch (error) {
      // A term that opened in the same moment must not be left without an owner: the caller gets it.
      const keeper = await standing?.catch(() => null);
      if (keeper) return keeper.term;
      throw error;
    }
  }

  async #isReady(signal: AbortSignal): Promise<boolean> {
    if (this.#ready === undefined) return true;
    return untilAborted(signal, Promise.resolve(this.#ready({ signal })));
  }

  /** One campaign. `null`: someone else leads, or what was won could not be confirmed. */
  async #stand(wait: boolean, signal: AbortSignal): Promise<Keeper | null> {
    // The last term may be over but its office not yet given back: `close()` waits for that too.
    if (this.#state.kind === "leading") void this.#track(this.#state.keeper.term.ended);
    this.#state = { kind: "standing" };
    try {
      const seen = (token: bigint): void => this.#floor.seen(token);
      const campaign = this.backend.campaign(this.#candidacy, { wait, signal, seen });
      const hold = await this.#granted(campaign, signal);
      if (hold === null) return null;
      const deadline = await this.#admission.confirm(hold, signal);
      if (deadline === null) return null;
      if (!signal.aborted) return this.#open(hold, deadline);
      await this.#admission.giveBack(hold);
      throw signal.reason;
    } finally {
      if (this.#state.kind === "standing") this.#state = { kind: "idle" };
    }
  }

  /** What an aborted campaign still wins is given back; nobody waits for that but `close()`. */
  async #granted(campaign: Promise<Hold | null>, signal: AbortSignal): Promise<Hold | null> {
    try {
      return await untilAborted(signal, campaign);
    } catch (error) {
      if (signal.aborted) void this.#track(this.#admission.withdraw(campaign));
      throw error;
    }
  }

  #open(hold: Hold, deadline: Deadline): Keeper {
    const { name: election, candidate } = this;
    const { value } = this.#candidacy;
    this.#floor.admitted(hold.token);
    const openedAt = this.#clock.now();
    const term = new Term({
      election,
      candidate,
      token: hold.token,
      value,
      since: this.#clock.wall(),
      deadline,
      elapsedMs: () => this.#clock.now() - openedAt,
    });
    const keeper = new Keeper({
      clock: this.#clock,
      timing: this.timing,
      hold,
      term,
      deadline,
      events: this.#events,
      reported: () => void Promise.resolve().then(() => this.#leave(state)),
    });
    const state: State = { kind: "leading", keeper };
    this.#state = state;
    this.#events.log("info", `${candidate} leads with token ${term.token}`);
    this.#events.emit("elected", { term, waitedMs: this.#clock.now() - this.#standingSince });
    keeper.start();
    return keeper;
  }

  #leave(state: State): void {
    if (this.#state === state) this.#state = { kind: "idle" };
  }

  #fail(doing: string, error: unknown): void {
    this.#events.log(isRetriable(error) ? "warn" : "error", `${doing}: ${describe(error)}`);
    this.#events.emit("error", { error });
  }

  #assertFree(): void {
    if (this.#closing.aborted)
      throw new ConclaveError("state", `election "${this.name}" is closed; open a new one`);
    const inOffice = this.#state.kind === "leading" && this.#state.keeper.term.end === undefined;
    const standing = this.#campaigning || this.#state.kind === "standing";
    if (!this.#run && !inOffice && !standing) return;
    throw new ConclaveError(
      "state",
      `this candidate is ${inOffice ? "in office" : "standing"} already; one Election is one candidate: open another for a second one`,
    );
  }

  #stood(unlink: () => void): void {
    this.#campaigning = false;
    unlink();
  }

  /** A signal that aborts with the caller's or with `close()`; linked by hand, unlinked when done. */
  #stopSignal(signal: AbortSignal | undefined): { signal: AbortSignal; unlink: () => void } {
    const controller = new AbortController();
    const stop = (source: Stop) => () => controller.abort(source.reason);
    const unlinks = [this.#closing, ...(signal ? [signal] : [])].map((s) => onAbort(s, stop(s)));
    return { signal: controller.signal, unlink: () => unlinks.forEach((unlink) => unlink()) };
  }

  /** `close()` waits for all that is under way. */
  #track<T>(promise: Promise<T>): Promise<T> {
    const running = (this.#running ??= new Set());
    const forget = (): void => {
      running.delete(tracked);
      if (running.size === 0 && this.#running === running) this.#running = undefined;
    };
    const tracked = promise.then(forget, forget);
    running.add(tracked);
    return promise;
  }
}

/** Without types a URL is easily given here. It is not repeated: it may hold a password. */
function checkBackend(backend: unknown): Backend {
  if (typeof backend === "object" && backend !== null && "campaign" in backend) return backend as Backend;
  throw invalid(
    `backend must be a backend object, got ${backend === null ? "null" : typeof backend}; ` +
      `to stand on a URL use openElection({ name, backend: url })`,
  );
}
