/** What a leader does next with a schedule. Pure: no clock, no store, no job. */
import { ConclaveError } from "../kit/errors.js";
import type { Ledger, Run, RunState } from "./ledger.js";
import { isOpen, record } from "./ledger.js";
import type { Timetable } from "./timetable.js";

/**
 * `at-most-once`: a scheduled time is claimed before its job and never again; if the
 * leader dies on it, it is missed and reported. `at-least-once`: a scheduled time is
 * settled only after its job; the next leader runs it again, with the attempt
 * number.
 */
export type Mode = "at-most-once" | "at-least-once";
/** What becomes of scheduled times that passed while nobody could run them. */
export type Misfire = "skip" | "once" | "all";
/** What becomes of a scheduled time whose predecessor is still running. */
export type Overlap = "skip" | "wait" | "parallel";

export interface Policy {
  readonly mode: Mode;
  readonly misfire: Misfire;
  /** With `misfire: "skip"`: how late a scheduled time may still run. */
  readonly graceMs: number;
  /** With `misfire: "all"`: how many at most, the newest of them. */
  readonly maxCatchUp: number;
  readonly overlap: Overlap;
  /** Attempts at one scheduled time before it is given up as missed (`at-least-once`). */
  readonly maxAttempts: number;
  /** How often one leader runs a job that fails, all in all, and the first pause before it does so again. */
  readonly retry: { readonly attempts: number; readonly backoffMs: number };
  /** Runs kept in the record. */
  readonly keep: number;
}

/** Who acts, and when by its own wall clock (for people). */
export interface Actor {
  readonly token: bigint;
  readonly by: string;
  readonly now: number;
}

/** Runs side by side: each campaigns in the record until it has ended, and a record is small. */
const MOST_PARALLEL = 50;

export type Decision =
  /** Nothing is due before `until`; `null` = never again. */
  | { readonly kind: "wait"; readonly until: number | null }
  /** Something is due, but a job has to settle first. */
  | { readonly kind: "busy" }
  /** Claim this scheduled time, and note what is passed over. */
  | { readonly kind: "claim"; readonly run: Run; readonly skipped: Run | null }
  /** Nothing is run, something is noted. */
  | { readonly kind: "note"; readonly run: Run };

export function decide(
  ledger: Ledger,
  timetable: Timetable,
  policy: Policy,
  actor: Actor,
  active: ReadonlySet<number>,
): Decision {
  const most = policy.overlap === "parallel" ? MOST_PARALLEL : 1;
  const busy = active.size >= most;
  const again = ledger.runs.find((run) => isUnfinished(run, policy, actor.token) && !active.has(run.at));
  if (again !== undefined) return busy ? { kind: "busy" } : retry(again, policy, actor);
  const first = timetable.next(ledger.cursor);
  if (first === null || first > actor.now) return { kind: "wait", until: first };
  const due = select(timetable, policy, actor.now, first);
  if (busy) {
    // What was due before the last run began does not overlap it: it is a misfire, and waits for its turn.
    const began = Math.max(...ledger.runs.filter((run) => active.has(run.at)).map((run) => run.startedAt));
    if (policy.overlap === "wait" || first <= began) return { kind: "busy" };
    return { kind: "note", run: skip(due.all, actor, overlapped(policy)) };
  }
  if (due.at === null) return { kind: "note", run: skip(due.all, actor, due.why) };
  const passed = passedOver(timetable, due.all, due.at);
  const run = claim(due.at, 1, actor);
  return { kind: "claim", run, skipped: passed.length === 0 ? null : skip(passed, actor, due.why) };
}

function overlapped({ overlap }: Policy): string {
  if (overlap === "parallel") return `${MOST_PARALLEL} runs were still going on (overlap: parallel)`;
  return "the run before was still going on (overlap: skip)";
}

/**
 * Nobody has led this schedule yet, by the store. What has passed since this
 * replica was started is due, or told: at most once, the record may also have
 * been removed, and those scheduled times run already.
 */
export function firstLedger(
  timetable: Timetable,
  policy: Policy,
  actor: Actor,
  since: number,
): { ledger: Ledger; missed: Run[] } {
  const ledger = { cursor: Math.min(since, actor.now), runs: [] };
  const oldest = timetable.next(ledger.cursor);
  if (policy.mode === "at-least-once" || oldest === null || oldest > actor.now) return { ledger, missed: [] };
  const all = [oldest, ...timetable.latest(oldest, actor.now, policy.maxCatchUp)];
  const passed = skip(
    all,
    actor,
    "there was no record of this schedule yet: whether it was run is not known",
  );
  return { ledger: record(ledger, [passed], policy.keep), missed: [passed] };
}

/** A new leader's first look: what older leaders left behind is settled or will be run again. */
export function takeOver(ledger: Ledger, policy: Policy, actor: Actor): { ledger: Ledger; missed: Run[] } {
  const missed: Run[] = [];
  if (policy.mode === "at-least-once") return { ledger, missed };
  for (const run of ledger.runs) {
    if (run.state !== "running" || run.token === actor.token) continue;
    const note = `claimed by ${run.by}, which did not tell how it ended: it may have run in part or in whole`;
    missed.push({ ...run, state: "missed", endedAt: actor.now, note });
  }
  return { ledger: record(ledger, missed, policy.keep), missed };
}

/** Applied to the stored ledger; the same claim applied twice changes nothing. */
export function applyClaim(ledger: Ledger, run: Run, skipped: Run | null, policy: Policy): Ledger {
  const current = ledger.runs.find((other) => other.at === run.at);
  if (current === undefined ? run.at <= ledger.cursor : !isOpen(current)) {
    throw new ConclaveError(
      "state",
      `${new Date(run.at).toISOString()} is dealt with already; it is not run again`,
    );
  }
  return record(ledger, skipped === null ? [run] : [skipped, run], policy.keep);
}

/** The longest pause before a failed run is tried again. */
const LONGEST_PAUSE_MS = 3_600_000;

/** When a failed run is tried again by the leader that began with attempt `first`; `null`: it is not. The pause doubles each time. */
export function retryOf(
  run: Run,
  { state }: { readonly state: RunState },
  first: number,
  { retry: { attempts, backoffMs } }: Policy,
): { readonly pauseMs: number } | null {
  const failed = state === "failed" || state === "timed-out";
  const made = run.attempt - first + 1;
  if (!failed || made >= attempts) return null;
  return { pauseMs: Math.min(LONGEST_PAUSE_MS, backoffMs * 2 ** (made - 1)) };
}

/** The next attempt at a run that failed. Only the term that claimed it may begin it; applied twice it changes nothing. */
export function applyRetry(ledger: Ledger, failed: Run, next: Run, policy: Policy): Ledger {
  const current = ledger.runs.find((other) => other.at === failed.at);
  const attempts = [failed.attempt, next.attempt];
  if (current?.token !== failed.token || current.state !== "running" || !attempts.includes(current.attempt))
    throw new ConclaveError(
      "state",
      `${new Date(failed.at).toISOString()} is dealt with already; it is not run again`,
    );
  return record(ledger, [next], policy.keep);
}

/** How a run ended. Only the term that claimed it may tell, and only while it is still its own. */
export function applyEnd(ledger: Ledger, run: Run, policy: Policy): Ledger {
  const current = ledger.runs.find((other) => other.at === run.at);
  const ours = current?.token === run.token && current.attempt === run.attempt && isOpen(current);
  return ours ? record(ledger, [run], policy.keep) : ledger;
}

function isUnfinished(run: Run, policy: Policy, token: bigint): boolean {
  if (run.state === "released") return true;
  if (policy.mode === "at-most-once") return false;
  return run.state === "interrupted" || (run.state === "running" && run.token !== token);
}

function retry(run: Run, policy: Policy, actor: Actor): Decision {
  if (run.state === "released")
    return { kind: "claim", run: claim(run.at, run.attempt, actor), skipped: null };
  if (run.attempt < policy.maxAttempts)
    return { kind: "claim", run: claim(run.at, run.attempt + 1, actor), skipped: null };
  const note = `given up after ${run.attempt} attempts, none of which was finished`;
  return { kind: "note", run: { ...run, state: "missed", endedAt: actor.now, note } };
}

interface Due {
  readonly all: readonly number[];
  /** The one to run now; `null` = none. */
  readonly at: number | null;
  /** Why those before it are passed over. */
  readonly why: string;
}

function select(timetable: Timetable, policy: Policy, now: number, first: number): Due {
  const second = timetable.next(first);
  const single = second === null || second > now;
  // Not all of them if they are too many, but always the first: the note has to tell from when on.
  const newest = single ? [] : timetable.latest(first, now, policy.maxCatchUp);
  const all = [first, ...newest];
  const last = all.at(-1)!;
  switch (policy.misfire) {
    case "once":
      return { all, at: last, why: "nobody could run it in time; only the newest is run (misfire: once)" };
    case "all": {
      const at = all.at(-policy.maxCatchUp) ?? first;
      return { all, at, why: `more than ${policy.maxCatchUp} had been missed (misfire: all)` };
    }
    case "skip": {
      const inTime = now - first <= policy.graceMs ? first : timetable.next(now - policy.graceMs - 1);
      const at = inTime !== null && inTime <= now ? inTime : null;
      return { all, at, why: `nobody could run it within ${policy.graceMs} ms (misfire: skip)` };
    }
  }
}

/** Those before `at`: not each of them if they are many, but the first and the last, since the note tells from when to when. */
function passedOver(timetable: Timetable, all: readonly number[], at: number): number[] {
  const passed = all.filter((time) => time < at);
  const newest = passed.at(-1);
  return newest === undefined ? passed : [...passed, ...timetable.latest(newest, at - 1, 1)];
}

function claim(at: number, attempt: number, actor: Actor): Run {
  const { token, by, now } = actor;
  return { at, attempt, state: "running", token, by, startedAt: now, endedAt: null, note: null };
}

function skip(times: readonly number[], actor: Actor, note: string): Run {
  const { token, by, now } = actor;
  const several = times.length > 1 ? { until: times.at(-1)!, count: times.length } : {};
  return {
    at: times[0]!,
    attempt: 0,
    state: "skipped",
    token,
    by,
    startedAt: now,
    endedAt: now,
    note,
    ...several,
  };
}
