/**
 * The one record of a schedule: how far it has come, and its last runs. Pure:
 * every change is a function from ledger to ledger, applied by compare-and-swap
 * under the leader's token, and may be applied again if its answer got lost.
 */
import { ConclaveError } from "../kit/errors.js";
import { parseToken } from "../kit/token.js";

/**
 * `running`: claimed. `released`: claimed, but given back before it began.
 * `interrupted`: stopped because the term ended. `missed`: claimed by a leader
 * that never told how it ended. `skipped`: deliberately not run.
 */
export type RunState =
  | "running"
  | "released"
  | "done"
  | "failed"
  | "timed-out"
  | "interrupted"
  | "missed"
  | "skipped";

/** One run of a schedule, as its history keeps it. */
export interface Run {
  /** The scheduled time: the key. */
  readonly at: number;
  /** From 1. */
  readonly attempt: number;
  readonly state: RunState;
  /** Token and candidate of the leader that claimed it. */
  readonly token: bigint;
  readonly by: string;
  /** By the claiming leader's wall clock; for people. */
  readonly startedAt: number;
  readonly endedAt: number | null;
  /** What went wrong, or why it was not run. */
  readonly note: string | null;
  /** For several skipped in a row: the last of them, and how many (at least). */
  readonly until?: number | undefined;
  readonly count?: number | undefined;
}

/** A schedule's memory in the store: what has run, what runs, and how far it has come. */
export interface Ledger {
  /** Scheduled times up to this one are dealt with. Never moves back, whatever any clock does. */
  readonly cursor: number;
  /** Oldest first. */
  readonly runs: readonly Run[];
}

const LONGEST_NOTE = 300;
/** Bytes of all runs together, as they are written down: the smallest store takes 64 KiB in one record. */
const LARGEST_HISTORY = 48 * 1024;
/** Far beyond any schedule, and still a date. */
const LAST_TIME = 8e15;
const FORMAT = 1;

/** Whether a run still has to be settled by somebody. */
export function isOpen(run: Run): boolean {
  return run.state === "running" || run.state === "released" || run.state === "interrupted";
}

/** Puts runs in the place of those of the same scheduled times, and moves the cursor on. */
export function record(ledger: Ledger, changed: readonly Run[], keep: number): Ledger {
  const times = new Set(changed.map((run) => run.at));
  const others = ledger.runs.filter((other) => !times.has(other.at));
  const fresh = changed.map((run) => ({ ...run, note: run.note?.slice(0, LONGEST_NOTE) ?? null }));
  const runs = [...others, ...fresh].sort((a, b) => a.at - b.at);
  const cursor = Math.max(ledger.cursor, ...changed.map((run) => run.until ?? run.at));
  return { cursor, runs: trim(runs, keep, times) };
}

/**
 * Open runs stay, however old: they are not history yet. So do those that have
 * just changed: how an old run ended, after newer ones, must be told once.
 */
function trim(runs: readonly Run[], keep: number, fresh: ReadonlySet<number>): Run[] {
  let excess = runs.length - keep;
  const sizes = runs.map(sizeOf);
  let tooLarge = sizes.reduce((sum, size) => sum + size, 0) - LARGEST_HISTORY;
  return runs.filter((run, i) => {
    if (isOpen(run) || fresh.has(run.at) || (excess <= 0 && tooLarge <= 0)) return true;
    excess--;
    tooLarge -= sizes[i]!;
    return false;
  });
}

/** The ledger is text within text: a quote takes four characters, a control character seven. */
function sizeOf(run: Run): number {
  return Buffer.byteLength(JSON.stringify(JSON.stringify(stored(run))));
}

function stored(run: Run): Record<string, unknown> {
  return { ...run, token: run.token.toString() };
}

export function encodeLedger(ledger: Ledger): string {
  return JSON.stringify({ v: FORMAT, cursor: ledger.cursor, runs: ledger.runs.map(stored) });
}

/** What cannot be read is left alone and reported: guessing might run something twice. */
export function decodeLedger(text: string): Ledger {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw foreign();
  }
  const { v, cursor, runs } = fields(parsed);
  if (v !== FORMAT || !isTime(cursor) || !Array.isArray(runs)) throw foreign();
  const decoded = runs.map(decodeRun);
  if (new Set(decoded.map((run) => run.at)).size < decoded.length) throw foreign();
  return { cursor, runs: decoded };
}

const STATES: readonly string[] = [
  "running",
  "released",
  "done",
  "failed",
  "timed-out",
  "interrupted",
  "missed",
  "skipped",
] satisfies RunState[];

function decodeRun(value: unknown): Run {
  const { at, attempt, state, token, by, startedAt, endedAt, note, until, count } = fields(value);
  const number = parseToken(token);
  if (!isTime(at) || !isCount(attempt) || !isState(state) || number === undefined) throw foreign();
  if (typeof by !== "string" || !isTime(startedAt) || (endedAt !== null && !isTime(endedAt))) throw foreign();
  if (note !== null && typeof note !== "string") throw foreign();
  const run = { at, attempt, state, token: number, by, startedAt, endedAt, note };
  if (until === undefined && count === undefined) return run;
  if (!isTime(until) || !isCount(count)) throw foreign();
  return { ...run, until, count };
}

function fields(value: unknown): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw foreign();
  return value as Record<string, unknown>;
}

function isTime(value: unknown): value is number {
  return typeof value === "number" && Math.abs(value) <= LAST_TIME;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

function isState(value: unknown): value is RunState {
  return typeof value === "string" && STATES.includes(value);
}

function foreign(): ConclaveError {
  return new ConclaveError(
    "conflict",
    "the schedule's record cannot be read by this version; nothing is run. Upgrade this replica, or remove the record by hand",
  );
}
