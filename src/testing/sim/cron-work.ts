/** A replica of a schedule: the library's own, with jobs that behave well or badly. */
import { Schedule } from "../../cron/cron.js";
import type { JobContext } from "../../cron/job.js";
import type { Timetable } from "../../cron/timetable.js";
import type { CronMonitor } from "./cron-monitor.js";
import type { CronPlan } from "./cron-plan.js";
import type { WorkloadHost, Workload } from "./workload.js";
import type { TermRecord } from "./term-record.js";
import type { Subject, SubjectOptions } from "./subject.js";

export interface CronWorkOptions {
  readonly plan: CronPlan;
  readonly timetable: Timetable;
  readonly monitor: CronMonitor;
}

export class CronWork implements Workload {
  readonly election: Subject;
  readonly updatesPerTtl: number;
  readonly #by: WorkloadHost;
  readonly #cron: CronWorkOptions;
  readonly #schedule: Schedule;
  /** Jobs that have not settled, of which term. */
  readonly #jobs = new Map<JobContext, TermRecord>();

  constructor(host: WorkloadHost, cron: CronWorkOptions, subject: SubjectOptions) {
    this.#by = host;
    this.#cron = cron;
    const { maxTermMs: _, ...options } = subject;
    const { mode, misfire, overlap, graceMs, maxCatchUp, maxAttempts, keep, timeoutMs } = cron.plan;
    const policy = { mode, misfire, overlap, graceMs, maxCatchUp, maxAttempts, keep };
    const job = (context: JobContext): Promise<void> => this.#job(context);
    const { timetable } = cron;
    this.#schedule = new Schedule(
      { ...options, ...policy, cron: timetable, timeoutMs: timeoutMs ?? undefined, job },
      timetable,
    );
    this.election = this.#schedule.election;
    // Claims and ends, of what is due and of all that is caught up with.
    this.updatesPerTtl = 2 * (maxCatchUp + host.plan.ttlMs / 1_000) + RACES;
  }

  begin(): void {
    const { process } = this.#by;
    for (const event of ["missed", "skipped"] as const)
      this.#schedule.on(event, ({ run }) => {
        if (!process.alive) return;
        this.#late(`${run.at} was told as ${event}`);
        this.#cron.monitor.told(run);
      });
    // Faults are what the world is made of: nobody needs to be warned of them.
    this.#schedule.on("error", () => {});
    this.#schedule.on("finished", () => {});
  }

  close(): Promise<void> {
    return this.#schedule.close();
  }

  async #job(context: JobContext): Promise<void> {
    const { scheduledAt, attempt, term } = context;
    const { monitor, owner } = this.#by;
    const at = scheduledAt.getTime();
    const record = this.#by.opened(term);
    this.#late(`the job of ${at} began`);
    for (const other of this.#jobs.values())
      if (other !== record)
        monitor.violate("work-overlap", `${owner} began a job of ${term.token} beside one of ${other.token}`);
    this.#jobs.set(context, record);
    record.work = "running";
    this.#cron.monitor.begun(at, attempt, record);
    let completed = false;
    try {
      completed = await this.#workload(context, record);
    } finally {
      this.#jobs.delete(context);
      if (![...this.#jobs.values()].includes(record)) record.work = "settled";
      this.#cron.monitor.settled(at, attempt, completed);
    }
    if (!completed) throw context.signal.reason;
  }

  /** Whether it came to its end. */
  async #workload({ term, signal }: JobContext, record: TermRecord): Promise<boolean> {
    const { random, misbehaviour, resource } = this.#by;
    const { longestJobMs } = this.#cron.plan;
    const longest = random.chance(1 / 6) ? longestJobMs : longestJobMs / 6;
    const stubborn = random.chance(0.1);
    await misbehaviour.rest(stubborn ? new AbortController().signal : signal, random.next() * longest);
    if (random.chance(0.3) || term.held) resource.send(record);
    const order = misbehaviour.ordered;
    misbehaviour.obeyed();
    if (order === "throw") throw new Error("the job failed");
    return order === "return" || stubborn || misbehaviour.deaf || !signal.aborted;
  }

  #late(what: string): void {
    const { owner, state, monitor } = this.#by;
    if (state === "closed") monitor.violate("after-close", `${owner} after close: ${what}`);
  }
}

/** A write built on an old read fails, and is tried again every 25 ms or so for as long as the replica lags. */
const RACES = 110;
