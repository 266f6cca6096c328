/** Prometheus counters of schedules. */
import { Counter, Registry } from "prom-client";

/** What is asked of a `Schedule` of `conclave/cron`, which this entry point does not need otherwise. */
export interface WatchedSchedule {
  readonly name: string;
  readonly election: { readonly backend: { readonly name: string } };
  on(
    event: "started" | "finished" | "missed" | "skipped",
    listener: (event: { readonly run: WatchedRun }) => void,
  ): () => void;
}

/** What is used of a run. */
export interface WatchedRun {
  readonly attempt: number;
  readonly state: string;
  /** Several skipped in a row. */
  readonly count?: number | undefined;
}

/** Where metrics of schedules are registered. */
export interface ScheduleMetricsOptions {
  /** Where the metrics are registered. Default: a registry of their own. */
  readonly registry?: Registry | undefined;
}

const LABELS = ["schedule", "backend"] as const;
type Label = (typeof LABELS)[number];

const OUTCOMES = ["done", "failed", "timed-out", "interrupted"];

/** Prometheus metrics of schedules. */
export class ScheduleMetrics {
  readonly registry: Registry;
  readonly #runs: Counter<Label | "outcome">;
  readonly #retries: Counter<Label>;
  readonly #missed: Counter<Label>;
  readonly #skipped: Counter<Label>;

  constructor(options: ScheduleMetricsOptions = {}) {
    this.registry = options.registry ?? new Registry();
    const registers = [this.registry];
    const labelNames = [...LABELS];
    this.#runs = new Counter({
      name: "conclave_cron_runs_total",
      help: "Runs that have ended on this replica, by outcome (done, failed, timed-out, interrupted)",
      labelNames: [...LABELS, "outcome"],
      registers,
    });
    this.#retries = new Counter({
      name: "conclave_cron_retries_total",
      help: "Runs begun on this replica as a second or later attempt",
      labelNames,
      registers,
    });
    this.#missed = new Counter({
      name: "conclave_cron_missed_total",
      help: "Scheduled runs that this replica had to report as missed",
      labelNames,
      registers,
    });
    this.#skipped = new Counter({
      name: "conclave_cron_skipped_total",
      help: "Scheduled runs deliberately not run (misfire, overlap)",
      labelNames,
      registers,
    });
  }

  /** Counts what happens on this replica from now on. Returns the way to stop. */
  watch(schedule: WatchedSchedule): () => void {
    const labels = { schedule: schedule.name, backend: schedule.election.backend.name };
    // From the start, so that a counter that never moved reads 0 and not "no data".
    for (const outcome of OUTCOMES) this.#runs.inc({ ...labels, outcome }, 0);
    for (const counter of [this.#retries, this.#missed, this.#skipped]) counter.inc(labels, 0);
    const offs = [
      schedule.on("started", ({ run }) => {
        if (run.attempt > 1) this.#retries.inc(labels);
      }),
      schedule.on("finished", ({ run }) => this.#runs.inc({ ...labels, outcome: run.state })),
      schedule.on("missed", () => this.#missed.inc(labels)),
      schedule.on("skipped", ({ run }) => this.#skipped.inc(labels, run.count ?? 1)),
    ];
    return () => offs.forEach((off) => off());
  }
}
