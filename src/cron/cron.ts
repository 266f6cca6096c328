/**
 * A job on a schedule, once per scheduled time across all replicas. One of
 * them leads; each scheduled time is claimed in the same store by compare-and-swap
 * under the leader's token, so that neither two leaders nor two clocks can claim
 * it twice.
 */
import type { Backend } from "../seam/backend.js";
import type { Clock } from "../seam/clock.js";
import { systemClock } from "../kit/clock.js";
import { Election } from "../election/election.js";
import { checkElectionOptions, ELECTION_OPTIONS } from "../election/known-options.js";
import type { ElectionOptions } from "../api/options.js";
import { invalid } from "../kit/errors.js";
import { openBackend } from "../open.js";
import type { CronEventName, CronListener, CronMetrics } from "./events.js";
import { CronReports } from "./events.js";
import type { Job } from "./job.js";
import type { Ledger } from "./ledger.js";
import { isStale, ScheduleLeader } from "./leader.js";
import type { Misfire, Mode, Overlap, Policy } from "./schedule.js";
import { LedgerStore } from "./store.js";
import type { Timetable } from "./timetable.js";
import { cronTimetable } from "./timetable.js";

/** What a schedule is started with. */
export interface ScheduleOptions extends Omit<ElectionOptions, "backend" | "ready" | "maxTermMs"> {
  /** Name of the schedule, and of its election: one for each job, the same on every replica. */
  readonly name: string;
  /** Five fields, six with seconds in front, or `@daily` and the like; or a timetable of your own. */
  readonly cron: string | Timetable;
  /** Whose wall clock the pattern means. Default `UTC`, the same on every machine. */
  readonly timeZone?: string | undefined;
  /** A backend, or the URL of one; one that is opened here is closed with the schedule. The same store on every replica. */
  readonly backend: Backend | string | URL;
  readonly job: Job;
  /** Default `at-most-once`. */
  readonly mode?: Mode | undefined;
  /** Default `once`. */
  readonly misfire?: Misfire | undefined;
  /** Default 60 s. */
  readonly graceMs?: number | undefined;
  /** Default 100. */
  readonly maxCatchUp?: number | undefined;
  /** Default `skip`. */
  readonly overlap?: Overlap | undefined;
  /** Tells the job to stop, and counts it as timed out. Default: no limit. */
  readonly timeoutMs?: number | undefined;
  /** Default 10. */
  readonly maxAttempts?: number | undefined;
  /**
   * Runs a job that threw or timed out again: `attempts` times all in all, the
   * first pause `backoffMs` long and each one twice the last, at most an hour.
   * Only the leader that saw it fail does so, in its term, and `overlap` counts
   * the run as going on meanwhile. Default: not at all.
   */
  readonly retry?: { readonly attempts: number; readonly backoffMs: number } | undefined;
  /** Runs kept for `history()`. Default 50, at most 200. */
  readonly keep?: number | undefined;
}

const { ready: _ready, maxTermMs: _maxTermMs, ...COMMON } = ELECTION_OPTIONS;
const SCHEDULE_OPTIONS: Readonly<Record<keyof ScheduleOptions, true>> = {
  ...COMMON,
  ...{ name: true, cron: true, timeZone: true, backend: true, job: true, mode: true, misfire: true },
  ...{ graceMs: true, maxCatchUp: true, overlap: true, timeoutMs: true, maxAttempts: true },
  ...{ retry: true, keep: true },
};

/** Starts a replica of the schedule. Rejects if the pattern is wrong; from then on errors are events. */
export async function schedule(options: ScheduleOptions): Promise<Schedule> {
  checkElectionOptions("schedule()", options, SCHEDULE_OPTIONS);
  const timeZone = options.timeZone ?? "UTC";
  const timetable =
    typeof options.cron === "string" ? await cronTimetable(options.cron, timeZone) : options.cron;
  const { backend } = options;
  if (typeof backend !== "string" && !(backend instanceof URL))
    return new Schedule({ ...options, backend }, timetable);
  const opened = await openBackend(backend);
  try {
    return new Schedule({ ...options, backend: opened, closeBackend: true }, timetable);
  } catch (error) {
    await opened[Symbol.asyncDispose]();
    throw error;
  }
}

/** The last runs of a schedule, for whoever wants to know: no candidate, no leadership. */
export async function readHistory(
  backend: Backend,
  name: string,
  signal?: AbortSignal,
): Promise<Ledger | null> {
  const store = new LedgerStore(backend, name, systemClock, HISTORY_ATTEMPT_MS);
  return store.read(signal ?? new AbortController().signal);
}

const HISTORY_ATTEMPT_MS = 5_000;
/** The longest a single timer lasts: more would end the job at once, or early. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

/** One replica of a schedule. */
export class Schedule implements AsyncDisposable {
  readonly name: string;
  /** The contest for who runs it. */
  readonly election: Election;
  readonly #clock: Clock;
  readonly #timetable: Timetable;
  readonly #store: LedgerStore;
  readonly #events: CronReports;
  readonly #closing = new AbortController();
  readonly #closed = new AbortController();
  readonly #running: Promise<void>;

  /** Use {@link schedule}: it reads the pattern. */
  constructor(options: ScheduleOptions & { readonly backend: Backend }, timetable: Timetable) {
    const policy = policyOf(options);
    const { job, timeoutMs } = options;
    if (typeof job !== "function") throw invalid(`job must be a function, got ${typeof job}`);
    if (timeoutMs !== undefined) inRange("timeoutMs", timeoutMs, 1, LONGEST_TIMEOUT_MS);
    this.#clock = options.clock ?? systemClock;
    this.election = new Election(electionOptions(options));
    this.name = this.election.name;
    this.#timetable = timetable;
    this.#events = new CronReports(this.name, options.backend.name, options.logger);
    this.#store = new LedgerStore(options.backend, this.name, this.#clock, this.election.timing.attemptMs);
    if (this.next() === null) throw invalid("the pattern never fires again; nothing was scheduled");
    const closed = this.#closed.signal;
    const since = this.#clock.wall();
    const [store, clock] = [this.#store, this.#clock];
    const common = { timetable, policy, job, timeoutMs, store, clock, since, closed };
    this.election.on("error", ({ error }) => this.#events.electionFailed(error));
    this.#running = this.election.run(
      (term) =>
        new ScheduleLeader({ ...common, events: this.#events, term }).lead().catch((error: unknown) => {
          // Not a fault of the work: a newer leader exists, we just did not know it yet.
          if (!isStale(error)) throw error;
          this.#events.failed(error);
        }),
      { signal: this.#closing.signal },
    );
  }

  on<E extends CronEventName>(event: E, listener: CronListener<E>): () => void {
    return this.#events.on(event, listener);
  }

  get metrics(): Readonly<CronMetrics> {
    return this.#events.metrics;
  }

  /** The next scheduled time by this machine's clock, in epoch milliseconds. */
  next(): number | null {
    return this.#timetable.next(this.#clock.wall());
  }

  /** The last runs, from the store: of all replicas. `null` = none has led yet. */
  history(signal?: AbortSignal): Promise<Ledger | null> {
    return this.#store.read(signal ?? new AbortController().signal);
  }

  /** Stops the job if it runs here, waits for it (at most `drainMs`), and hands over. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
    await this.election.close();
    this.#closed.abort(); // a job that ignores its signal may still be running: what it does is no longer written down
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** Those of its election; those of the schedule itself apart. What is left over is refused there. */
function electionOptions(options: ScheduleOptions & { readonly backend: Backend }): ElectionOptions {
  const { cron, timeZone, job, mode, misfire, graceMs, maxCatchUp, ...others } = options;
  const { overlap, timeoutMs, maxAttempts, retry, keep, ...election } = others;
  void [
    cron,
    timeZone,
    job,
    mode,
    misfire,
    graceMs,
    maxCatchUp,
    overlap,
    timeoutMs,
    maxAttempts,
    retry,
    keep,
  ];
  return election;
}

function policyOf(options: ScheduleOptions): Policy {
  return {
    mode: oneOf("mode", options.mode ?? "at-most-once", ["at-most-once", "at-least-once"]),
    misfire: oneOf("misfire", options.misfire ?? "once", ["skip", "once", "all"]),
    overlap: oneOf("overlap", options.overlap ?? "skip", ["skip", "wait", "parallel"]),
    graceMs: inRange("graceMs", options.graceMs ?? 60_000, 0, Number.MAX_SAFE_INTEGER),
    maxCatchUp: whole("maxCatchUp", options.maxCatchUp ?? 100, 1, 10_000),
    maxAttempts: whole("maxAttempts", options.maxAttempts ?? 10, 1, 1_000_000),
    retry: retryPolicy(options.retry),
    keep: whole("keep", options.keep ?? 50, 1, 200),
  };
}

function retryPolicy(retry: ScheduleOptions["retry"]): Policy["retry"] {
  if (retry === undefined) return { attempts: 1, backoffMs: 0 };
  if (typeof retry !== "object" || retry === null)
    throw invalid("retry must be an object such as { attempts: 3, backoffMs: 60_000 }");
  return {
    attempts: whole("retry.attempts", retry.attempts, 1, 1_000),
    backoffMs: inRange("retry.backoffMs", retry.backoffMs, 0, 3_600_000),
  };
}

function oneOf<T extends string>(name: string, value: T, allowed: readonly T[]): T {
  if (allowed.includes(value)) return value;
  throw invalid(`${name} is ${JSON.stringify(value)}; it must be one of ${allowed.join(", ")}`);
}

function inRange(name: string, value: number, least: number, most: number): number {
  if (Number.isFinite(value) && value >= least && value <= most) return value;
  throw invalid(`${name} is ${value}; it must lie between ${least} and ${most}`);
}

function whole(name: string, value: number, least: number, most: number): number {
  if (Number.isInteger(value)) return inRange(name, value, least, most);
  throw invalid(`${name} is ${value}; it must be a whole number`);
}
