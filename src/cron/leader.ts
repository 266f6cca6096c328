/** One term's work at a schedule: claims what is due, runs it, writes down how it ended. */
import type { Clock } from "../seam/clock.js";
import { ConclaveError, isConclaveError, isRetriable } from "../kit/errors.js";
import type { Term } from "../api/term.js";
import { onAbort, sleep } from "../kit/wait.js";
import type { CronReports } from "./events.js";
import type { Ending, Job } from "./job.js";
import { startJob } from "./job.js";
import type { Ledger, Run } from "./ledger.js";
import { record } from "./ledger.js";
import type { Actor, Policy } from "./schedule.js";
import { applyClaim, applyEnd, applyRetry, decide, firstLedger, retryOf, takeOver } from "./schedule.js";
import type { LedgerStore } from "./store.js";
import type { Timetable } from "./timetable.js";

export interface LeaderOptions {
  readonly term: Term;
  readonly timetable: Timetable;
  readonly policy: Policy;
  readonly job: Job;
  readonly timeoutMs: number | undefined;
  readonly store: LedgerStore;
  readonly clock: Clock;
  readonly events: CronReports;
  /** When this replica was started, by its wall clock. */
  readonly since: number;
  /** Aborts when the schedule is closed: from then on the store is not asked and nothing is told. */
  readonly closed: AbortSignal;
}

/** The wall clock may be set while we sleep: look at it this often. */
const LONGEST_SLEEP_MS = 5_000;
/** Pause after a fault of the store. */
const RETRY_MS = 250;
/** A clock this far before the last scheduled time dealt with is worth an error, not just a wait. */
const CLOCK_BEHIND_MS = 60_000;

/** At least once: rather once more than not at all. */
const DOUBTFUL: Ending = {
  state: "interrupted",
  note: "it returned after the term had ended: whether it was done is not known",
};

export class ScheduleLeader {
  readonly #o: LeaderOptions;
  readonly #active = new Map<number, Promise<void>>();
  readonly #listeners = new Set<() => void>();
  #ledger: Ledger = { cursor: 0, runs: [] };
  #updating: Promise<void> = Promise.resolve();
  #complained = false;

  constructor(options: LeaderOptions) {
    this.#o = options;
  }

  /** Until the term's signal aborts; returns when the jobs have settled. Rejects if a newer leader was here. */
  async lead(): Promise<void> {
    const { term } = this.#o;
    const unlink = onAbort(term.signal, () => {
      for (const listener of this.#listeners) listener();
    });
    try {
      await this.#takeOver();
      while (!term.signal.aborted) await this.#step();
    } catch (error) {
      if (!term.signal.aborted) throw error;
    } finally {
      while (this.#active.size > 0) await Promise.all(this.#active.values());
      unlink();
    }
  }

  /** Seals the ledger under our token: from here on older leaders can claim nothing. */
  async #takeOver(): Promise<void> {
    const { policy, events, timetable, since } = this.#o;
    // Of all tries: one whose answer got lost may be the one that was written, and a later one then finds nothing to do.
    const missed = new Map<number, Run>();
    const actor = this.#actor();
    await this.#update((stored) => {
      const taken =
        stored === null
          ? firstLedger(timetable, policy, actor, since)
          : takeOver(stored, policy, this.#actor());
      for (const run of taken.missed) missed.set(run.at, run);
      return taken.ledger;
    });
    for (const run of this.#ledger.runs) {
      const told = missed.get(run.at);
      if (run.state === told?.state && run.note === told.note) events.report(run);
    }
  }

  async #step(): Promise<void> {
    const { timetable, policy, clock, term, events } = this.#o;
    const actor = this.#actor();
    const decision = decide(this.#ledger, timetable, policy, actor, new Set(this.#active.keys()));
    switch (decision.kind) {
      case "wait": {
        this.#watchClock(actor.now);
        const left = decision.until === null ? Infinity : decision.until - actor.now;
        return sleep(clock, Math.min(left, LONGEST_SLEEP_MS), term.signal);
      }
      case "busy": {
        const pause = new AbortController();
        const unlink = onAbort(term.signal, () => pause.abort());
        await Promise.race([...this.#active.values(), sleep(clock, LONGEST_SLEEP_MS, pause.signal)]);
        unlink();
        return pause.abort();
      }
      case "note":
        await this.#update((stored) => record(stored ?? this.#ledger, [decision.run], policy.keep));
        return events.report(decision.run);
      case "claim":
        await this.#update((stored) =>
          applyClaim(stored ?? this.#ledger, decision.run, decision.skipped, policy),
        );
        if (decision.skipped !== null) events.report(decision.skipped);
        return this.#start(decision.run);
    }
  }

  /** `first`: the attempt with which this leader began. */
  #start(run: Run, first = run.attempt): void {
    const { term, clock, job, timeoutMs, events, policy } = this.#o;
    if (!term.held || term.signal.aborted) {
      const release = this.#end({ ...run, state: "released", note: "the term ended before it began" });
      this.#track(run.at, release);
      return;
    }
    events.metrics.started++;
    if (run.attempt > 1) events.metrics.retried++;
    const startedAt = clock.now();
    const context = { scheduledAt: new Date(run.at), attempt: run.attempt, term };
    const running = startJob(clock, job, context, timeoutMs, (listener) => this.#onTermEnd(listener));
    events.emit("started", { run });
    const noted = running.ended.then(async (ending) => {
      const next = retryOf(run, ending, first, policy);
      if (next === null) return this.#finish(run, ending, clock.now() - startedAt);
      await this.#finish(run, ending, clock.now() - startedAt, next.pauseMs);
      // A job that ignores its time limit must have settled: two attempts never run side by side.
      await running.settled;
      await this.#again(run, ending, next.pauseMs, first);
    });
    this.#track(run.at, Promise.all([noted, running.settled]));
  }

  /**
   * A failed run is tried again by the leader that claimed it and saw it fail, in
   * the same term: its claim stays, so that at most once nobody else runs it.
   */
  async #again(run: Run, ending: Ending, pauseMs: number, first: number): Promise<void> {
    const { term, clock, policy } = this.#o;
    await sleep(clock, pauseMs, term.signal);
    const next: Run = { ...run, attempt: run.attempt + 1, startedAt: clock.wall(), note: null };
    const mayRun = (): boolean => term.held && !term.signal.aborted;
    let last = run;
    try {
      if (mayRun()) {
        await this.#update((stored) => applyRetry(stored ?? this.#ledger, run, next, policy));
        if (mayRun()) return this.#start(next, first);
        last = next;
      }
    } catch (error) {
      if (!term.signal.aborted) this.#o.events.failed(error);
    }
    // At least once, the next leader goes on with it; at most once, this was the last of it.
    const state = policy.mode === "at-least-once" ? "interrupted" : ending.state;
    await this.#end({ ...last, state, note: ending.note, endedAt: clock.wall() });
  }

  /** One listener on the term's signal for however many jobs: Node warns of more than ten. */
  #onTermEnd(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** A job counts as active until it has settled *and* its end is written down. */
  #track(at: number, promise: Promise<unknown>): void {
    const tracked = promise.then(
      () => forget(),
      () => forget(),
    );
    // A failed run that is tried again is tracked anew before the attempt before is forgotten.
    const forget = (): void => {
      if (this.#active.get(at) === tracked) this.#active.delete(at);
    };
    this.#active.set(at, tracked);
  }

  /** `pauseMs`: it is tried again after this long, and stays claimed. */
  async #finish(run: Run, settled: Ending, durationMs: number, pauseMs?: number): Promise<void> {
    const { events, policy, clock, closed } = this.#o;
    const ending = policy.mode === "at-least-once" && settled.told === true ? DOUBTFUL : settled;
    const { metrics } = events;
    metrics.lastDurationMs = durationMs;
    if (ending.state === "done") metrics.done++;
    else if (ending.state === "failed") metrics.failed++;
    else if (ending.state === "timed-out") metrics.timedOut++;
    else metrics.interrupted++;
    const told: Run = { ...run, state: ending.state, note: ending.note, endedAt: clock.wall() };
    const lost = ending.state === "interrupted" && policy.mode === "at-most-once";
    const stored: Run = lost ? { ...told, state: "missed" } : told;
    if (pauseMs === undefined) await this.#end(stored);
    if (closed.aborted) return;
    events.finished(told, ending, pauseMs === undefined ? undefined : `again in ${pauseMs} ms`);
    if (lost) events.report(stored);
  }

  /** Best effort: if it cannot be written, the next leader finds a run without an end and deals with it. */
  async #end(run: Run): Promise<void> {
    const { policy, events, closed } = this.#o;
    try {
      await this.#update((stored) => applyEnd(stored ?? this.#ledger, run, policy), true);
    } catch (error) {
      if (!closed.aborted) events.failed(error);
    }
  }

  /**
   * One after the other: answers that overtake each other would make an older
   * ledger the one we go by, and a scheduled time be claimed again.
   */
  #update(change: (ledger: Ledger | null) => Ledger, afterwards = false): Promise<void> {
    const updated = this.#updating.then(() => this.#change(change, afterwards));
    this.#updating = updated.catch(() => {});
    return updated;
  }

  /** `afterwards`: also when the term is on its way out or over; then one refusal is the end of it. */
  async #change(change: (ledger: Ledger | null) => Ledger, afterwards: boolean): Promise<void> {
    const { term, store, clock, events, closed } = this.#o;
    const signal = afterwards ? closed : term.signal;
    for (;;) {
      if (!afterwards) term.assertHeld();
      try {
        this.#ledger = await store.update(term.token, change, signal);
        return;
      } catch (error) {
        if (!isRetriable(error) || signal.aborted || !term.held) throw error;
        events.failed(error);
        await sleep(clock, RETRY_MS * (0.5 + clock.random()), signal);
      }
    }
  }

  #watchClock(now: number): void {
    const { events } = this.#o;
    const behind = this.#ledger.cursor - now;
    if (behind < CLOCK_BEHIND_MS || this.#complained) return;
    this.#complained = true;
    const message =
      `this machine's clock is ${Math.round(behind / 1000)} s before the last scheduled time that was run; ` +
      "nothing is run twice, so nothing is run until it has caught up. Set the clock, or let another replica lead";
    events.failed(new ConclaveError("state", message));
  }

  #actor(): Actor {
    const { term, clock } = this.#o;
    return { token: term.token, by: term.candidate, now: clock.wall() };
  }
}

/** Whether an error says that a newer leader has been here. */
export function isStale(error: unknown): boolean {
  return isConclaveError(error) && error.code === "stale-leader";
}
