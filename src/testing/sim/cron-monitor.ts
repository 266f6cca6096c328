/**
 * The invariants of schedules. Like the other monitor this one stands outside:
 * it sees every job that begins anywhere, and every ledger the store takes.
 */
import { decodeLedger, isOpen } from "../../cron/ledger.js";
import type { Ledger, Run } from "../../cron/ledger.js";
import type { Timetable } from "../../cron/timetable.js";
import type { CronPlan } from "./cron-plan.js";
import type { Monitor } from "./monitor.js";
import type { TermRecord } from "./term-record.js";
import type { SimNode, SimProcess } from "./node.js";

export type CronRule =
  /** What was claimed or run is no instant of the timetable, or was not due yet. */
  | "cron-instant"
  /** An instant ran twice; at least once: it ran again after its end had been written down. */
  | "cron-twice"
  /** An instant ran again without a higher attempt number. */
  | "cron-attempt"
  /** A job began without leadership, or without a claim in the store. */
  | "cron-unclaimed"
  /** An instant neither ran to its end nor was reported, or nothing runs any more. */
  | "cron-untold"
  /** An instant was passed over or given up without need. */
  | "cron-needless"
  /** The ledger went back, or tells what did not happen. */
  | "cron-ledger";

export interface CronCounts {
  /** Instants that anything is known of. */
  instants: number;
  runs: number;
  /** Runs that were not the first attempt. */
  repeats: number;
  missed: number;
  /** Notes of instants passed over; one may stand for several. */
  skipped: number;
}

/** What is known of one instant, or of several that were passed over together. */
interface Known {
  readonly run: Run;
  /** True time of its last change. */
  readonly changedAt: number;
}

/** How long after it could have been dealt with an instant may be left, when all is well. */
const PATIENCE_MS = 5_000;
/** Instants that are looked at one by one: a clock that is set a day ahead passes over many. */
const MOST_INSTANTS = 300;

export class CronMonitor {
  readonly counts: CronCounts = { instants: 0, runs: 0, repeats: 0, missed: 0, skipped: 0 };
  /** Someone claimed an instant, or began a job, on this node. */
  onClaim: (node: SimNode) => void = () => {};
  onRun: (node: SimNode) => void = () => {};
  readonly #plan: CronPlan;
  readonly #timetable: Timetable;
  readonly #monitor: Monitor;
  /** The schedule's beginning: the cursor of its first ledger. */
  #origin: number | undefined;
  /** The ledger being looked at may be the first there is. */
  #beginning = false;
  #token = -1n;
  #cursor = -Infinity;
  #wroteAt = -Infinity;
  /** After a loss of power what is stored may be older than what was seen written. */
  #powerLost = false;
  /** Those that the timetable was asked about. */
  readonly #instants = new Set<number>();
  readonly #known = new Map<number, Known>();
  readonly #claims = new Set<string>();
  /** Highest attempt that began. */
  readonly #begun = new Map<number, number>();
  readonly #completed = new Set<string>();
  readonly #active = new Map<string, SimProcess>();
  /** Reports that are in the ledger and not told by an event yet, and the term that wrote them. */
  readonly #untold = new Map<number, { readonly token: bigint; readonly since: number }>();

  constructor(plan: CronPlan, timetable: Timetable, monitor: Monitor) {
    this.#plan = plan;
    this.#timetable = timetable;
    this.#monitor = monitor;
  }

  /** Of a store that can lose by it what it had not confirmed. */
  losePower(): void {
    this.#powerLost = true;
  }

  /** The store took a new ledger: fenced, as the schedule keeps it. */
  wrote(text: string): void {
    const fenced = JSON.parse(text) as { token: string; data: string };
    const token = BigInt(fenced.token);
    const ledger = decodeLedger(fenced.data);
    this.#monitor.note(`ledger: cursor ${ledger.cursor} by ${token}`);
    if (this.#powerLost) this.#recover(ledger);
    this.#beginning = this.#origin === undefined || this.#powerLost;
    this.#origin ??= ledger.cursor;
    if (token < this.#token)
      this.#violate("cron-ledger", `token ${token} wrote the ledger after ${this.#token}`);
    if (ledger.cursor < this.#cursor)
      this.#violate("cron-ledger", `the cursor went back from ${this.#cursor} to ${ledger.cursor}`);
    this.#token = token;
    this.#cursor = ledger.cursor;
    this.#wroteAt = this.#now;
    for (const run of ledger.runs) this.#noted(run, token);
    this.#powerLost = false;
  }

  begun(at: number, attempt: number, { term, token, owner, process }: TermRecord): void {
    this.counts.runs++;
    if (attempt > 1) this.counts.repeats++;
    this.#monitor.note(`${owner} runs ${at}, attempt ${attempt}`);
    const what = `${owner} began ${at}, attempt ${attempt}`;
    if (!this.#isInstant(at)) this.#violate("cron-instant", `${what}, which is no instant of the timetable`);
    if (!term.held) this.#violate("cron-unclaimed", `${what}, without holding leadership`);
    if (!this.#claims.has(claimOf({ at, attempt, token })))
      this.#violate("cron-unclaimed", `${what}, without a claim in the store`);
    const before = this.#begun.get(at);
    if (before !== undefined && this.#plan.mode === "at-most-once")
      this.#violate("cron-twice", `${what}; it had begun before`);
    else if (before !== undefined && attempt <= before)
      this.#violate("cron-attempt", `${what}; attempt ${before} had begun before`);
    const known = this.#known.get(at);
    if (known !== undefined && !isOpen(known.run))
      this.#violate("cron-twice", `${what}, after it was written down as ${known.run.state}`);
    this.#begun.set(at, Math.max(before ?? 0, attempt));
    this.#active.set(keyOf({ at, attempt }), process);
    this.onRun(process.node);
  }

  /** The job has settled: at its own end, or because it was stopped or failed. */
  settled(at: number, attempt: number, completed: boolean): void {
    const key = keyOf({ at, attempt });
    if (completed) this.#completed.add(key);
    this.#active.delete(key);
  }

  /** A replica told by an event that an instant was missed or skipped. */
  told(run: Run): void {
    this.#untold.delete(run.at);
  }

  /** When all has been well for long enough. `wall`: the right time. */
  checkRuns(wall: number): void {
    const idle = this.#now - this.#wroteAt > PATIENCE_MS;
    const due = this.#timetable.next(this.#cursor);
    if (idle && (due === null || due < wall - PATIENCE_MS))
      return this.#violate("cron-untold", `nothing has been claimed since ${this.#cursor}`);
    let at = this.#origin ?? wall;
    for (let count = 0; count < MOST_INSTANTS; count++) {
      at = this.#timetable.next(at) ?? Infinity;
      if (at > this.#cursor) break;
      this.#account(at);
      at = Math.max(at, this.#known.get(at)?.run.until ?? at);
    }
    for (const begun of this.#begun.keys()) this.#account(begun);
    for (const [reported, { token, since }] of this.#untold) {
      const ended = this.#monitor.termOf(token)?.ended ?? true;
      if (!ended && since < this.#now - PATIENCE_MS)
        this.#violate("cron-untold", `${reported} was written down as not run, but no event told it`);
    }
  }

  get #now(): number {
    return this.#monitor.scheduler.now;
  }

  #violate(rule: CronRule, detail: string): void {
    this.#monitor.violate(rule, detail);
  }

  #isInstant(at: number): boolean {
    if (this.#instants.has(at)) return true;
    if (this.#timetable.next(at - 1) !== at) return false;
    this.#instants.add(at);
    return true;
  }

  /** Something in the ledger is new or has changed. */
  #noted(run: Run, token: bigint): void {
    const before = this.#known.get(run.at)?.run;
    if (before !== undefined && isSame(before, run)) return;
    this.#monitor.note(`ledger: ${run.at} #${run.attempt} ${run.state} of ${run.token}`);
    if (before === undefined) this.counts.instants++;
    else if (!isOpen(before) && !this.#powerLost)
      this.#violate("cron-ledger", `${run.at} was ${before.state} and became ${run.state}`);
    this.#known.set(run.at, { run, changedAt: this.#now });
    if (!this.#isInstant(run.at)) this.#violate("cron-instant", `${run.at} is in the ledger, but no instant`);
    if (run.state === "running") this.#claimed(run, before);
    else if (run.state === "done" && !this.#completed.has(keyOf(run)))
      this.#violate("cron-ledger", `${run.at}, attempt ${run.attempt}, is called done, but its job was not`);
    else if (run.state === "missed" || run.state === "skipped") this.#reported(run, token);
  }

  #claimed(run: Run, before: Run | undefined): void {
    if (before === undefined && run.startedAt < run.at)
      this.#violate("cron-instant", `${run.at} was claimed at ${run.startedAt}, before it was due`);
    this.#claims.add(claimOf(run));
    const node = this.#monitor.termOf(run.token)?.node;
    if (node !== undefined) this.onClaim(node);
  }

  #reported(run: Run, token: bigint): void {
    const { mode, maxAttempts } = this.#plan;
    if (run.state === "skipped") {
      this.counts.skipped++;
      if (!this.#maySkip(run)) this.#violate("cron-needless", `${run.at} was skipped: ${run.note}`);
    } else {
      this.counts.missed++;
      if (mode === "at-least-once" && run.attempt < maxAttempts)
        this.#violate("cron-needless", `${run.at} was given up after attempt ${run.attempt}`);
    }
    this.#untold.set(run.at, { token, since: this.#now });
  }

  /** Whether the policy lets instants be passed over that the clock of whoever did it called due. */
  #maySkip(run: Run): boolean {
    const { mode, misfire, overlap, graceMs, maxCatchUp } = this.#plan;
    if (this.#beginning && mode === "at-most-once") return true;
    if (overlap === "skip" && this.#overlapped(run)) return true;
    const last = run.until ?? run.at;
    if (misfire === "skip") return last < run.startedAt - graceMs;
    const newer = misfire === "once" ? 1 : maxCatchUp;
    return this.#timetable.latest(last, run.startedAt, newer).length === newer;
  }

  /** Whether the same leader had begun another before this one was due. */
  #overlapped(run: Run): boolean {
    for (const { run: other } of this.#known.values())
      if (other.token === run.token && other.attempt > 0 && other.startedAt < run.at) return true;
    return false;
  }

  #account(at: number): void {
    const known = this.#known.get(at);
    if (known === undefined)
      return this.#violate("cron-untold", `${at} neither ran to its end nor was reported`);
    if (!isOpen(known.run) || this.#active.get(keyOf(known.run))?.alive === true) return;
    if (known.changedAt < this.#now - PATIENCE_MS)
      this.#violate("cron-untold", `${at} was left behind as ${known.run.state}, and nobody reports it`);
  }

  /** What was not durable is gone, and nobody had been told that it was there. */
  #recover(ledger: Ledger): void {
    if (ledger.runs.length === 0) this.#origin = ledger.cursor;
    this.#cursor = ledger.cursor;
    this.#token = -1n;
    for (const at of this.#known.keys()) if (at > ledger.cursor) this.#known.delete(at);
  }
}

function keyOf({ at, attempt }: { at: number; attempt: number }): string {
  return `${at}#${attempt}`;
}

function claimOf({ at, attempt, token }: { at: number; attempt: number; token: bigint }): string {
  return `${at}#${attempt}#${token}`;
}

function isSame(a: Run, b: Run): boolean {
  return a.state === b.state && a.attempt === b.attempt && a.token === b.token && a.until === b.until;
}
