/** One candidate of one election: it campaigns, leads, and campaigns again. The only retrier; users see `Election` and `Lock`. */
import { releaseHold } from "../law/release.js";
import { admit, granted } from "./admission.js";
import { announce, checkBackend, checkFenced } from "./assurance.js";
import type { Backend, Hold } from "../seam/backend.js";
import { Backoff } from "../kit/backoff.js";
import type { Clock } from "../seam/clock.js";
import { systemClock } from "../kit/clock.js";
import type { Deadline } from "../law/deadline.js";
import { ConclaveError, describe, isRetriable } from "../kit/errors.js";
import type { Stop } from "../kit/stop.js";
import { Reports } from "../law/reports.js";
import { leaseOf } from "../law/lease.js";
import { checkId, checkName, checkValue, defaultId } from "../kit/names.js";
import type { ElectionOptions } from "../api/options.js";
import { Tenure } from "../law/tenure.js";
import { resolveTiming, type Timing } from "../law/timing.js";
import { TokenFloor } from "../law/token-floor.js";
import { FollowerLog } from "./follower-log.js";
import { HistoryWriter } from "./term-history.js";
import { Operators } from "./operators.js";
import { UnderWay } from "./under-way.js";
import { transferTerm } from "./transfer.js";
import type { Standee, TransferOptions, TransferResult } from "../api/term.js";
import { forgetStore } from "./one-store.js";
import { type Call, type CandidateState, IDLE } from "./candidate-state.js";
import { readRoster } from "./standees.js";
import { RosterMember, wantsRoster } from "./standing.js";
import { serve, type Work } from "./work.js";
import { bounded, type LinkedSignal, sleep, untilAborted } from "../kit/wait.js";

export class Candidate {
  readonly election: string;
  /** Never used before, never used again. */
  readonly candidate: string;
  readonly timing: Timing;
  readonly backend: Backend;
  readonly clock: Clock;
  readonly events: Reports;
  readonly floor = new TokenFloor();
  /** What is published with its leadership. */
  readonly #value: string;
  readonly #ready: ElectionOptions["ready"];
  readonly #closeBackend: boolean;
  readonly #followed = new FollowerLog(this);
  readonly #underWay = new UnderWay();
  readonly operators: Operators | undefined;
  readonly #history: HistoryWriter | undefined;
  readonly #member: RosterMember | undefined;
  #state: CandidateState = IDLE;
  #announced = false;
  /** The end of the last term, if it may not have been reported when the next campaign began. */
  #last: Promise<unknown> | undefined;
  #closed: Promise<void> | undefined;

  constructor(options: ElectionOptions) {
    this.election = checkName(options.name);
    this.backend = checkBackend(options.backend);
    this.clock = options.clock ?? systemClock;
    checkFenced(this.backend, options.allowUnfenced);
    this.timing = resolveTiming(options, options.backend.timing ?? {}, options.backend.guarantees);
    this.candidate = `${checkId(options.id ?? defaultId())}-${this.clock.uniqueId()}`;
    this.#value = checkValue(options.value ?? this.candidate);
    this.#closeBackend = options.closeBackend ?? false;
    this.events = new Reports(this.election, this.candidate, options.logger, this.backend.name);
    this.operators = options.controls === true ? new Operators(this) : undefined;
    this.#member = wantsRoster(options) ? new RosterMember(this, options) : undefined;
    this.#ready = this.#member?.eligible === false ? () => false : options.ready;
    this.#history = options.history === true ? new HistoryWriter(this, this.#underWay.closing) : undefined;
  }

  /** The term it is in, if any. */
  get tenure(): Tenure | undefined {
    return this.#state.kind === "leading" ? this.#state.tenure : undefined;
  }

  /** Whether it campaigns or leads. */
  get stands(): boolean {
    return this.#state.kind !== "idle";
  }

  get closed(): boolean {
    return this.#underWay.closed;
  }

  /** Campaigns, works and campaigns again until the signal aborts. Errors are events, never a rejection. */
  async run(work: Work, signal: AbortSignal | undefined): Promise<void> {
    this.#begin("run");
    const stop = this.stopSignal(signal);
    return this.track(
      this.#runUntil(work, stop.signal).finally(() => {
        this.#state = IDLE;
        stop.unlink();
      }),
    );
  }

  /** Campaigns until it leads. Passing faults are waited out; permanent ones reject, and so does the signal. */
  async campaign(signal: Stop | undefined): Promise<Tenure> {
    return this.#once(signal, (stop) => this.#campaign(stop, false));
  }

  /** One attempt; `null` if someone else leads or it is not ready. Rejects if the store cannot be asked. */
  async tryCampaign(signal: Stop | undefined): Promise<Tenure | null> {
    return this.#once(signal, async (stop) => {
      const limitMs = 2 * this.timing.attemptMs;
      const since = this.clock.now();
      if (!(await this.#isReady(stop))) return null;
      let attempt: Promise<Tenure | null> | undefined;
      try {
        return await bounded(this.clock, limitMs, stop, "campaigning", (limited) => {
          attempt = this.#attempt(since, false, limited);
          return attempt;
        });
      } catch (error) {
        // A term that opened in the same moment must not be left without an owner: the caller gets it.
        const tenure = await attempt?.catch(() => null);
        if (tenure) return tenure;
        throw error;
      }
    });
  }

  /** Ends its term, if it has one: stops the work, then hands over. */
  async resign(why = "resign() was called"): Promise<void> {
    await this.tenure?.endNow("resigned", why);
  }

  /** Ends this term in favour of a named candidate, and says who was seen to lead next. */
  async transfer(tenure: Tenure, to: string, options: TransferOptions = {}): Promise<TransferResult> {
    return transferTerm(this, tenure, { to, ...options }, this.#member);
  }

  /** Withdraws, or stops the work and releases; afterwards nothing is under way. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  /** A term of this candidate is over and reported. */
  ended(tenure: Tenure): void {
    this.#history?.note(tenure);
    // Later: whoever hears of the end may still ask for the term.
    void Promise.resolve().then(() => {
      const state = this.#state;
      if (state.kind !== "leading" || state.tenure !== tenure) return;
      this.events.token = undefined;
      this.#state = state.call === "run" ? { kind: "campaigning", call: "run" } : IDLE;
    });
  }

  /** Who stands, as its roster shows. */
  candidates(signal: AbortSignal): Promise<readonly Standee[]> {
    return readRoster(this, this.#member, signal);
  }

  acceptRegression(): void {
    this.floor.forget();
    this.events.log("warn", "a lower token than those seen so far is accepted from now on");
  }

  fail(doing: string, error: unknown): void {
    const level = isRetriable(error) ? "warn" : "error";
    this.events.fail(level, `${doing}: ${describe(error)}`, error, doing === "working");
  }

  /** A signal that aborts with the caller's or with `close()`; to be unlinked when done. */
  stopSignal(signal: Stop | undefined): LinkedSignal {
    return this.#underWay.stopSignal(signal);
  }

  track<T>(promise: Promise<T>): Promise<T> {
    return this.#underWay.track(promise);
  }

  async #close(): Promise<void> {
    const ending = this.tenure?.endNow("closed", "the election was closed");
    this.#underWay.stop(new ConclaveError("state", `election "${this.election}" is closed`));
    await ending;
    forgetStore(this.election, this.backend);
    await this.#underWay.settled();
    if (this.#closeBackend) await this.backend[Symbol.asyncDispose]();
  }

  #begin(call: Call): void {
    if (this.closed)
      throw new ConclaveError("state", `election "${this.election}" is closed; open a new one`);
    const state = this.#state;
    const leads = state.kind === "leading" && state.tenure.over === undefined;
    if (state.kind === "campaigning" || leads || (state.kind === "leading" && state.call === "run"))
      throw new ConclaveError(
        "state",
        `this candidate is ${leads ? "leading" : "campaigning"} already; one Election is one candidate: open another for a second one`,
      );
    // The last term may be over but its lease not yet released: `close()` waits for that too.
    if (state.kind === "leading") this.#last = this.track(state.tenure.ended);
    if (!this.#announced) announce(this.election, this.backend, this.events);
    this.#announced = true;
    this.#state = { kind: "campaigning", call };
    this.#member?.begin();
  }

  async #once<T extends Tenure | null>(
    signal: Stop | undefined,
    campaign: (stop: AbortSignal) => Promise<T>,
  ): Promise<T> {
    this.#begin("campaign");
    const stop = this.stopSignal(signal);
    return this.track(
      campaign(stop.signal).finally(() => {
        if (this.#state.kind === "campaigning") this.#state = IDLE;
        stop.unlink();
      }),
    );
  }

  async #runUntil(work: Work, stop: AbortSignal): Promise<void> {
    const { retryMs, ttlMs, drainMs } = this.timing;
    const backoff = new Backoff(this.clock, retryMs, ttlMs);
    const stuck = (error: unknown): void => this.fail("working", error);
    while (!stop.aborted) {
      const tenure = await this.#campaign(stop, true).catch(() => undefined);
      if (tenure === undefined) continue; // only an aborted signal gets here
      const outcome = await serve(tenure, work, { clock: this.clock, stop, patienceMs: drainMs, stuck });
      if (outcome.kind === "failed") this.fail("working", outcome.error);
      else backoff.reset();
      await sleep(this.clock, backoff.next(), stop);
    }
  }

  /** Campaigns until it leads. Rejects only when `stop` aborts or, unless `forever`, on a permanent error. */
  async #campaign(stop: AbortSignal, forever: boolean): Promise<Tenure> {
    const { retryMs, ttlMs } = this.timing;
    const backoff = new Backoff(this.clock, retryMs / 8, ttlMs / 2);
    const since = this.clock.now();
    for (;;) {
      stop.throwIfAborted();
      try {
        if (await this.#isReady(stop)) {
          const tenure = await this.#attempt(since, true, stop);
          if (tenure !== null) return tenure;
        } else {
          await sleep(this.clock, retryMs, stop);
        }
      } catch (error) {
        stop.throwIfAborted();
        const permanent = !isRetriable(error);
        if (permanent && !forever) throw error;
        this.fail("campaigning", error);
        await sleep(this.clock, permanent ? backoff.permanent() : backoff.next(), stop);
      }
    }
  }

  async #isReady(signal: AbortSignal): Promise<boolean> {
    if (this.#ready === undefined) return true;
    return untilAborted(signal, Promise.resolve(this.#ready({ signal })));
  }

  /** One campaign. `null`: someone else leads, or what was won could not be confirmed. */
  async #attempt(since: number, wait: boolean, signal: AbortSignal): Promise<Tenure | null> {
    // One term after the other, and their events in that order.
    if (this.#last !== undefined) await untilAborted(signal, this.#last);
    this.#last = undefined;
    if ((await this.operators?.allowCampaign(wait, signal)) === false) return null;
    const { ttlMs, marginMs, retryMs, attemptMs } = this.timing;
    const { election, candidate } = this;
    const waits = { retryMs, attemptMs, standBackMs: this.#member?.standBackMs };
    const campaign = this.backend.campaign(
      { election, candidate, value: this.#value, ttlMs, stopMs: ttlMs - marginMs, ...waits },
      { wait, signal, seen: (token) => this.floor.seen(this.#followed.met(token, wait, signal)) },
    );
    const hold = await granted(campaign, this, signal);
    if (hold === null) return null;
    const deadline = await admit(hold, this, this.operators, signal);
    if (deadline === null) return null;
    if (!signal.aborted) return this.#open(hold, deadline, since);
    await releaseHold(hold, this, 1);
    throw signal.reason;
  }

  #open(hold: Hold, deadline: Deadline, since: number): Tenure {
    const call = this.#state.kind === "idle" ? "campaign" : this.#state.call;
    this.floor.admitted(hold.token);
    const lease = leaseOf(hold, this.clock, this.timing, deadline);
    const tenure = new Tenure(this, hold, lease, this.#value);
    this.#state = { kind: "leading", call, tenure };
    this.events.token = tenure.token;
    this.events.log("info", `${this.candidate} leads with token ${tenure.token}`);
    const { guarantees } = this.backend;
    this.events.emit("elected", { term: tenure.term, waitedMs: this.clock.now() - since, guarantees });
    tenure.start();
    this.operators?.lead(tenure);
    this.#history?.note(tenure);
    return tenure;
  }
}
