/**
 * One term from its beginning to its end: a state machine over a hold and the
 * lease it depends on.
 *
 * A term that is given up ends in one order: abort the signal, let the work
 * settle, stop holding, release, report. A loss aborts at once and releases
 * nothing: a successor may hold the lease already.
 */
import type { Heir, Hold } from "../seam/backend.js";
import type { Timer } from "../seam/clock.js";
import { describe, NotLeaderError } from "../kit/errors.js";
import { StopSource } from "../kit/stop.js";
import type { Attempt, Lease, Tenant } from "./lease.js";
import { releaseHold } from "./release.js";
import type { TenureContext } from "./tenure-context.js";
import { HELD, type TenureState } from "./tenure-state.js";
import type { EndReason, Term, TermEnd } from "../api/term.js";
import { termOf, termOver } from "./term.js";
import { bounded, deferred, onAbort, settlesWithin, sharedController } from "../kit/wait.js";
import type { Deferred } from "../kit/wait.js";

const NOT_OURS = "the store says that someone else leads, or nobody";

export class Tenure implements Tenant {
  readonly context: TenureContext<Tenure>;
  readonly token: bigint;
  /** When the term began, by the wall clock, in epoch milliseconds. */
  readonly since: number;
  /** What users see of it. */
  readonly term: Term;
  /** Named in the releasing write. */
  heir: Heir | undefined;
  readonly #hold: Hold;
  readonly #lease: Lease;
  readonly #openedAt: number;
  #state: TenureState = HELD;
  #value: string;
  #jeopardy = false;
  #work: Promise<unknown> | undefined;
  /** For a term without work: its owner says by resigning that the work has stopped. */
  #resignation: Deferred<void> | undefined;
  #ending: Promise<TermEnd> | undefined;
  /** Created on first use: in a process with thousands of terms most are never used. */
  #controller: AbortController | undefined;
  #awaited: Deferred<TermEnd> | undefined;
  #timer: Timer | undefined;
  #unlink = (): void => {};
  /** Halted when no renewal extends this term any more. */
  readonly #final = new StopSource();

  constructor(context: TenureContext<Tenure>, hold: Hold, lease: Lease, value: string) {
    this.context = context;
    this.token = hold.token;
    this.since = context.clock.wall();
    this.#openedAt = context.clock.now();
    this.#hold = hold;
    this.#lease = lease;
    this.#value = value;
    this.term = termOf(this);
  }

  /** Renewal, watchdog and rotation begin. */
  start(): void {
    this.#lease.join(this);
    const { revoked } = this.#hold;
    if (revoked) this.#unlink = onAbort(revoked, () => this.revoked("the store says that the lease is gone"));
    // Already over: a timer started now would never be cancelled.
    if (this.#state.kind === "over") return this.#unlink();
    const { maxTermMs } = this.context.timing;
    if (maxTermMs === undefined) return;
    this.#timer = this.context.clock.after(maxTermMs, () => {
      void this.giveUp("the term reached its limit (maxTermMs)");
    });
  }

  get held(): boolean {
    return this.remainingMs > 0;
  }

  get remainingMs(): number {
    const state = this.#state;
    if (state.kind === "over") return 0;
    const left = state.kind === "lapsing" ? state.deadline.remainingMs() : this.#lease.remainingMs;
    if (left > 0) return left;
    // The getter itself ends the term: it must not answer "no" now and "yes" later.
    if (this.#lease.lost === undefined) this.expired();
    else this.revoked(this.#lease.lost);
    return 0;
  }

  get lastedMs(): number {
    const state = this.#state;
    return state.kind === "over" ? state.lastedMs : this.context.clock.now() - this.#openedAt;
  }

  get value(): string {
    return this.#value;
  }

  get over(): TermEnd | undefined {
    return this.#state.kind === "over" ? this.#state.end : undefined;
  }

  /** Settles when the term is over and reported; never rejects. */
  get ended(): Promise<TermEnd> {
    this.#awaited ??= deferred();
    if (this.#state.kind === "over" && this.#state.reported) this.#awaited.resolve(this.#state.end);
    return this.#awaited.promise;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = sharedController();
      if (this.stopping) this.#controller.abort(this.#why());
    }
    return this.#controller.signal;
  }

  /** Whether the signal has aborted, without making one. */
  get stopping(): boolean {
    return this.#state.kind !== "held";
  }

  /** What has to settle before the lease may be released. Must not reject. */
  serve(work: Promise<unknown>): void {
    this.#work = work;
  }

  async proclaim(value: string): Promise<void> {
    const { clock, timing } = this.context;
    const answer = await bounded(clock, timing.attemptMs, this.#final, "proclaiming", (signal) =>
      this.#hold.proclaim(value, { signal }),
    );
    // First the old deadline: an answer that comes after it changes nothing.
    if (this.held && this.#state.kind !== "lapsing") {
      if (answer === "lost") this.revoked(NOT_OURS);
      else if (this.#lease.accept(answer)) {
        this.#value = value;
        return;
      }
    }
    throw new NotLeaderError(this.token, "the value was not published: the term is over; stop its work");
  }

  async resign(): Promise<void> {
    this.#resigned.resolve();
    const ending = this.end("resigned", "resign() was called", this.#work);
    // Inside run() the work itself may be the one that waits here.
    if (this.#work === undefined) await ending;
  }

  transfer(...[to, options]: Parameters<Term["transfer"]>): ReturnType<Term["transfer"]> {
    return this.context.transfer(this, to, options);
  }

  /** Ends the term from outside. For a term from `campaign()` that is its owner's word that the work has stopped. */
  endNow(reason: EndReason, detail: string): Promise<TermEnd> {
    this.#resigned.resolve();
    return this.end(reason, detail, this.#work);
  }

  /** Gives leadership up when the work has stopped. Of a term from `campaign()` its owner says so, by resigning. */
  giveUp(detail: string): Promise<TermEnd> {
    return this.end("resigned", detail, this.#work ?? this.#resigned.promise);
  }

  /**
   * Ends the term on purpose, when `settled` has; without it there is nothing to
   * wait for. The first reason counts; later calls wait for the same end.
   */
  end(reason: EndReason, detail: string, settled: Promise<unknown> | undefined): Promise<TermEnd> {
    this.#ending ??= this.#endInOrder(reason, detail, settled);
    return this.#ending;
  }

  attempted(attempt: Attempt): void {
    const { events } = this.context;
    // Without a listener nothing is computed: there may be thousands of terms on a lease.
    if (attempt.error === undefined && !events.hears("renewal")) return;
    const { term, remainingMs } = this;
    events.emit("renewal", {
      term,
      ok: attempt.error === undefined,
      latencyMs: attempt.latencyMs,
      remainingMs,
    });
    if (attempt.error === undefined || remainingMs <= 0) return;
    const left = Math.round(remainingMs);
    events.log("warn", `renewing term ${this.token} failed, ${left} ms left: ${describe(attempt.error)}`);
    if (this.#jeopardy) return;
    this.#jeopardy = true;
    events.emit("jeopardy", { term, error: attempt.error });
  }

  extended(): void {
    if (!this.#jeopardy) return;
    this.#jeopardy = false;
    this.context.events.emit("safe", { term: this.term });
  }

  expired(): void {
    const state = this.#state;
    if (state.kind === "over") return;
    if (state.kind === "held") {
      this.#finish({ reason: "expired", detail: "the deadline passed without a renewal", drained: false });
      this.#hold.abandon?.(this.#lease.endsAt);
      return this.#report();
    }
    // Given up on purpose, but the work did not stop before the deadline. Now the record may be vacated.
    this.#finish({ reason: state.reason, detail: state.detail, drained: false });
    void this.#release();
  }

  revoked(detail: string): void {
    if (this.#state.kind === "over") return;
    this.#finish({ reason: "revoked", detail, drained: false });
    this.#report();
  }

  get #resigned(): Deferred<void> {
    return (this.#resignation ??= deferred());
  }

  async #endInOrder(
    reason: EndReason,
    detail: string,
    settled: Promise<unknown> | undefined,
  ): Promise<TermEnd> {
    const { clock, timing } = this.context;
    // Asked first: a deadline that passed unnoticed during a pause makes this an expired term, not a resigned one.
    if (!this.held) return this.ended;
    this.#state = { kind: "draining", reason, detail };
    this.#abort();
    const drained =
      settled === undefined || (await settlesWithin(clock, timing.drainMs, this.#final, settled));
    if (!this.held) return this.ended;
    if (drained) {
      this.#finish({ reason, detail, drained });
      await this.#release();
    } else this.#lapse(reason, detail);
    return this.ended;
  }

  /** Not released: the work may still act. It leaves its lease, so that no renewal moves its deadline any more. */
  #lapse(reason: EndReason, detail: string): void {
    const { clock, timing, events } = this.context;
    const deadline = this.#lease.frozen();
    this.#state = { kind: "lapsing", reason, detail, deadline };
    this.#final.stop();
    this.#lease.leave(this);
    const guard = (): void => {
      const left = this.remainingMs; // ends the term if there is nothing left
      if (left > 0) this.#timer = clock.after(left, guard);
    };
    this.#timer?.cancel();
    guard();
    events.log(
      "warn",
      `the work of term ${this.token} did not stop within ${timing.drainMs} ms; its lease runs out`,
    );
  }

  /** From here on the term is not held. Called once. */
  #finish(end: TermEnd): void {
    this.#state = { kind: "over", end, lastedMs: this.lastedMs, reported: false };
    this.#final.stop();
    this.#lease.leave(this);
    this.#timer?.cancel();
    this.#unlink();
    this.#abort();
  }

  #abort(): void {
    this.#controller?.abort(this.#why());
  }

  #why(): NotLeaderError {
    const state = this.#state;
    const ending = state.kind === "over" ? state.end : state;
    return termOver(this.token, this.context.election, "detail" in ending ? ending.detail : "");
  }

  async #release(): Promise<void> {
    await releaseHold(this.#hold, this.context, 2, this.heir);
    this.#report();
  }

  #report(): void {
    const state = this.#state;
    if (state.kind !== "over") return;
    const { end } = state;
    const { events } = this.context;
    const lost = end.reason === "expired" || end.reason === "revoked";
    events.log(lost ? "warn" : "info", `term ${this.token} ${end.reason}: ${end.detail}`);
    events.emit("ended", { term: this.term, end });
    this.#state = { ...state, reported: true };
    this.#awaited?.resolve(end);
    this.context.ended(this);
  }
}
