/**
 * Keeps one term in office and ends it. Two arms that do not wait for each
 * other: the renewer extends the deadline, the watchdog ends the term at the
 * deadline even while a renewal hangs.
 *
 * The one order in which a term is given up: abort the signal, let the work
 * settle, stop holding, release, report. A loss aborts at once and releases
 * nothing: what is not ours is not ours to give.
 */
import type { Extension, Hold } from "./backend.js";
import type { Clock, Timer } from "./clock.js";
import type { Deadline } from "./deadline.js";
import { describe, NotLeaderError } from "./errors.js";
import type { Emitter } from "./events.js";
import { Halt } from "./halt.js";
import type { EndReason, Term, TermEnd, TermKeeper } from "./term.js";
import type { Timing } from "./timing.js";
import { bounded, deferred, lazyOptions, limited, onAbort, sleep } from "./waiting.js";
import type { Deferred } from "./waiting.js";

export interface KeeperOptions {
  readonly clock: Clock;
  readonly timing: Timing;
  readonly hold: Hold;
  readonly term: Term;
  readonly deadline: Deadline;
  readonly events: Emitter;
  /** The term is over and reported. */
  readonly reported: () => void;
}

/** Tries to give an office back before leaving it to its ttl. */
const RELEASE_ATTEMPTS = 2;

export class Keeper implements TermKeeper {
  readonly term: Term;
  readonly #clock: Clock;
  readonly #timing: Timing;
  readonly #hold: Hold;
  readonly #deadline: Deadline;
  readonly #events: Emitter;
  readonly #reported: () => void;
  /** Halted when nothing may extend this term any more. */
  readonly #renewing = new Halt();
  /** The owner of a term from `campaign()` says that its work has stopped by resigning. */
  #resignation: Deferred<void> | undefined;
  #work: Promise<unknown> | undefined;
  #ending: Promise<TermEnd> | undefined;
  #renewal: Timer | undefined;
  #watchdog: Timer | undefined;
  #rotation: Timer | undefined;
  #unlink = (): void => {};
  #jeopardy = false;

  constructor(options: KeeperOptions) {
    this.#clock = options.clock;
    this.#timing = options.timing;
    this.#hold = options.hold;
    this.term = options.term;
    this.#deadline = options.deadline;
    this.#events = options.events;
    this.#reported = options.reported;
    this.term.attach(this);
  }

  start(): void {
    this.#guard();
    this.#renewAt(this.#hold.asked.now + this.#pace(), 0);
    const { revoked } = this.#hold;
    if (revoked) this.#unlink = onAbort(revoked, () => this.#lose("the store says the lease is gone"));
    // Over before it began: nothing that is armed now would be taken down again.
    if (this.#renewing.aborted) return this.#unlink();
    const { maxTermMs } = this.#timing;
    if (maxTermMs !== undefined) {
      this.#rotation = this.#clock.after(maxTermMs, () => {
        void this.end(
          "resigned",
          "the term reached its limit (maxTermMs)",
          this.#work ?? this.#resigned.promise,
        );
      });
    }
  }

  /** Tells what has to settle before the office may be given up. */
  serve(work: Promise<unknown>): void {
    this.#work = work;
  }

  async proclaim(value: string): Promise<void> {
    const answer = await this.#call("proclaiming", this.#timing.attemptMs, (signal) =>
      this.#hold.proclaim(value, { signal }),
    );
    if (!this.#accept(answer)) {
      throw new NotLeaderError(
        this.term.token,
        "the value was not published: the term is over; stop its work",
      );
    }
  }

  async resign(): Promise<void> {
    this.#resigned.resolve();
    const ending = this.end("resigned", "resign() was called", this.#work);
    if (this.#work === undefined) await ending;
  }

  /**
   * Ends the term on purpose, when `settled` has; without it there is nothing to
   * wait for. The first reason counts; later calls wait for the same end.
   */
  end(reason: EndReason, detail: string, settled: Promise<unknown> | undefined): Promise<TermEnd> {
    this.#ending ??= this.#wind(reason, detail, settled);
    return this.#ending;
  }

  /** Ends the term on purpose from outside: for a term from `campaign()` that is its owner's word that the work has stopped. */
  endNow(reason: EndReason, detail: string): Promise<TermEnd> {
    this.#resigned.resolve();
    return this.end(reason, detail, this.#work);
  }

  get #resigned(): Deferred<void> {
    return (this.#resignation ??= deferred());
  }

  /** The deadline has passed, or the store has spoken: the term holds no more. */
  over(): void {
    this.#stop();
    const end = this.term.end;
    if (end === undefined) return;
    // Given up on purpose but the work would not stop: it ran out, and now the record may be vacated.
    if (end.reason === "resigned" || end.reason === "closed")
      void this.#release().then(() => this.#report(end));
    else this.#report(end);
  }

  async #wind(reason: EndReason, detail: string, settled: Promise<unknown> | undefined): Promise<TermEnd> {
    if (!this.term.beginEnd(reason, detail)) return this.term.ended;
    if (settled === undefined || (await this.#drained(settled))) {
      if (this.term.held && this.term.finishEnding(true)) {
        this.#stop();
        await this.#release();
        this.#report(this.term.end!);
      }
    } else if (this.term.held) {
      // Not released: the work may still act. The deadline is the only thing that ends it for certain.
      this.#renewNoMore();
      this.#events.log(
        "warn",
        `the work of term ${this.term.token} did not stop within ${this.#timing.drainMs} ms; its lease runs out`,
      );
    }
    return this.term.ended;
  }

  async #drained(settled: Promise<unknown>): Promise<boolean> {
    const waiting = new Halt();
    const unlink = onAbort(this.#renewing, () => waiting.halt());
    const timeout = sleep(this.#clock, this.#timing.drainMs, waiting).then(() => false);
    const drained = await Promise.race([settled.then(() => true), timeout]);
    unlink();
    waiting.halt();
    return drained;
  }

  #renewAt(at: number, failures: number): void {
    if (this.#renewing.aborted) return;
    const delayMs = Math.max(0, at - this.#clock.now());
    this.#renewal = this.#clock.after(delayMs, () => void this.#renew(failures));
  }

  async #renew(failures: number): Promise<void> {
    const left = this.term.remainingMs;
    if (left <= 0 || this.#renewing.aborted) return;
    const startedAt = this.#clock.now();
    try {
      const answer = await this.#ask(left);
      this.#measure(true, startedAt);
      if (!this.#accept(answer)) return;
      // A lease shared by many may answer with an older question: never ask in a tight loop for that.
      const soonest = this.#clock.now() + this.#pace() / 4;
      this.#renewAt(Math.max(this.#extension(answer) + this.#pace(), soonest), 0);
    } catch (error) {
      if (this.#renewing.aborted) return;
      this.#measure(false, startedAt);
      if (!this.term.held) return;
      this.#endanger(error);
      this.#renewAt(this.#clock.now() + this.#retry(failures + 1), failures + 1);
    }
  }

  /** Bounded so that, however the store hangs, at least one more try fits into what is left. */
  #ask(leftMs: number): Promise<Extension | "lost"> {
    const limitMs = Math.min(this.#timing.attemptMs, Math.max(1, leftMs / 2));
    return this.#call("renewing", limitMs, (signal) => this.#hold.renew({ signal }));
  }

  /** A call that ends when nothing may extend this term any more. */
  #call<T>(what: string, limitMs: number, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return bounded(this.#clock, limitMs, this.#renewing, what, call);
  }

  #extension(answer: Extension | "lost"): number {
    return answer === "lost" ? this.#clock.now() : answer.asked.now;
  }

  /** Takes the store's answer. `false` = the term is over. */
  #accept(answer: Extension | "lost"): boolean {
    // First the old deadline: an answer that comes after it extends nothing, for `held` may already have said no.
    if (!this.term.held) return false;
    if (answer === "lost") {
      this.#lose("the store says that the office is not ours any more");
      return false;
    }
    if (this.#renewing.aborted) return false;
    this.#deadline.extend(answer.asked, this.#hold.ttlMs);
    if (this.#jeopardy) {
      this.#jeopardy = false;
      this.#events.emit("safe", { term: this.term });
    }
    return true;
  }

  #endanger(error: unknown): void {
    this.#events.log(
      "warn",
      `renewing term ${this.term.token} failed, ${Math.round(this.term.remainingMs)} ms left: ${describe(error)}`,
    );
    if (this.#jeopardy) return;
    this.#jeopardy = true;
    this.#events.emit("jeopardy", { term: this.term, error });
  }

  #measure(ok: boolean, startedAt: number): void {
    const latencyMs = this.#clock.now() - startedAt;
    this.#events.emit("renewal", { term: this.term, ok, latencyMs, remainingMs: this.term.remainingMs });
  }

  #lose(detail: string): void {
    if (this.term.finish({ reason: "revoked", detail, drained: false })) this.over();
  }

  /** Sleeps to the deadline, looks at the clock, sleeps again: timers are early, late, and do not know of renewals. */
  #guard(): void {
    const left = this.term.remainingMs;
    if (left <= 0) return;
    this.#watchdog = this.#clock.after(left, () => this.#guard());
  }

  #stop(): void {
    this.#renewNoMore();
    this.#watchdog?.cancel();
    this.#rotation?.cancel();
    this.#unlink();
  }

  #renewNoMore(): void {
    this.#renewing.halt();
    this.#renewal?.cancel();
  }

  /** Best effort: what is not given back runs out by itself. */
  async #release(): Promise<void> {
    const never = new Halt();
    for (let attempt = 1; attempt <= RELEASE_ATTEMPTS; attempt++) {
      try {
        return await limited(this.#clock, this.#timing.attemptMs, never, "releasing", (stop) =>
          this.#hold.release(lazyOptions(stop)),
        );
      } catch (error) {
        this.#events.log(
          "warn",
          `releasing term ${this.term.token} failed: ${describe(error)}; it runs out by itself`,
        );
        if (attempt === RELEASE_ATTEMPTS) this.#events.emit("error", { error });
        else await sleep(this.#clock, this.#timing.attemptMs / 4, never);
      }
    }
  }

  #report(end: TermEnd): void {
    this.#events.log(
      end.reason === "expired" || end.reason === "revoked" ? "warn" : "info",
      `term ${this.term.token} ${end.reason}: ${end.detail}`,
    );
    this.#events.emit("ended", { term: this.term, end });
    this.term.report(end);
    this.#reported();
  }

  /** Time between renewals, a little earlier each time so that many holders do not fall into step. */
  #pace(): number {
    return this.#timing.renewMs * (0.9 + 0.1 * this.#clock.random());
  }

  /** Sooner than a renewal, later with every failure, several times before the deadline. */
  #retry(failures: number): number {
    const { renewMs } = this.#timing;
    return (
      Math.min(renewMs / 2, (renewMs / 16) * 2 ** Math.min(failures, 4)) * (0.75 + 0.5 * this.#clock.random())
    );
  }
}
