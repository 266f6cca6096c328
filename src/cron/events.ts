/**
 * What a schedule tells. Listeners are told, never asked: what they throw
 * disturbs nothing. The same events go to `diagnostics_channel` under
 * `conclave:cron:<event>`.
 */
import { Emitter } from "../kit/emitter.js";
import type { Logger } from "../api/events.js";
import { describe } from "../kit/errors.js";
import { writeLog } from "../kit/log.js";
import { sayUnheard } from "../kit/unheard.js";
import type { Run } from "./ledger.js";

/** What a {@link Schedule} tells its listeners. */
export interface CronEvents {
  /** A job has begun. */
  started: { readonly run: Run };
  /** A job has ended: `run.state` says how. */
  finished: { readonly run: Run; readonly error?: unknown };
  /** A scheduled time was claimed and nobody can say that it was done, or it was given up. */
  missed: { readonly run: Run };
  /** One or more scheduled times were deliberately not run. */
  skipped: { readonly run: Run };
  /** Something went wrong and is being dealt with. */
  error: { readonly error: unknown };
}

/** Name of an event of a {@link Schedule}. */
export type CronEventName = keyof CronEvents;
/** A function that is told of one kind of event of a schedule. */
export type CronListener<E extends CronEventName> = (event: CronEvents[E]) => void;

/** Counted since this replica was started. */
export interface CronMetrics {
  started: number;
  done: number;
  failed: number;
  timedOut: number;
  interrupted: number;
  missed: number;
  skipped: number;
  /** Begun as a second or later attempt. */
  retried: number;
  lastDurationMs: number | null;
}

export class CronReports extends Emitter<CronEvents> {
  readonly #schedule: string;
  readonly #logger: Logger | undefined;
  readonly #backend: string;
  readonly metrics: CronMetrics = {
    started: 0,
    done: 0,
    failed: 0,
    timedOut: 0,
    interrupted: 0,
    missed: 0,
    skipped: 0,
    retried: 0,
    lastDurationMs: null,
  };

  constructor(schedule: string, backend: string, logger: Logger | undefined) {
    super();
    this.#schedule = schedule;
    this.#backend = backend;
    this.#logger = logger;
  }

  /** A run has ended. `again`: when a failed one is tried again. */
  finished(run: Run, ending: { readonly error?: unknown }, again?: string): void {
    const { error } = ending;
    const failed = run.state === "failed" || run.state === "timed-out";
    const text = `${runText(run)}${again === undefined ? "" : `; ${again}`}`;
    this.#log(
      failed ? "error" : run.state === "done" ? "info" : "warn",
      text,
      run,
      failed ? error : undefined,
    );
    if (failed) this.#unheard("finished", text);
    this.emit("finished", error === undefined ? { run } : { run, error });
  }

  /** Something went wrong with the schedule itself. */
  failed(error: unknown): void {
    const message = describe(error);
    this.#log("warn", message, undefined, error);
    this.#unheard("error", message);
    this.emit("error", { error });
  }

  /** An error of the election: it is in the log already. */
  electionFailed(error: unknown): void {
    this.#unheard("error", describe(error));
    this.emit("error", { error });
  }

  /** A scheduled time passed over, or lost. */
  report(run: Run): void {
    if (run.state === "skipped") {
      this.metrics.skipped += run.count ?? 1;
      this.#log("warn", runText(run), run);
      this.emit("skipped", { run });
    } else if (run.state === "missed") {
      this.metrics.missed++;
      this.#log("error", runText(run), run);
      this.#unheard("missed", runText(run));
      this.emit("missed", { run });
    }
  }

  protected get prefix(): string {
    return "conclave:cron:";
  }

  protected get source(): object {
    return { schedule: this.#schedule };
  }

  protected threw(error: unknown): void {
    this.#log("error", `a listener threw: ${describe(error)}`, undefined, error);
  }

  #log(level: keyof Logger, message: string, run?: Run, error?: unknown): void {
    if (this.#logger === undefined) return;
    const fields = {
      election: this.#schedule,
      schedule: this.#schedule,
      backend: this.#backend,
      ...(run !== undefined && runFields(run)),
    };
    const text = `schedule "${this.#schedule}": ${message}`;
    writeLog(this.#logger, { level, message: text, fields, error, showStack: true });
  }

  #unheard(event: CronEventName, message: string): void {
    if (this.#logger !== undefined || this.hears(event)) return;
    sayUnheard(`schedule "${this.#schedule}"`, message, `pass a logger, or listen to "${event}",`);
  }
}

function runFields(run: Run): Record<string, unknown> {
  return {
    candidate: run.by,
    token: run.token.toString(),
    scheduledAt: isoTime(run.at),
    attempt: run.attempt,
    state: run.state,
    ...(run.note !== null && { note: run.note }),
  };
}

function runText(run: Run): string {
  const range = run.until === undefined ? "" : ` to ${isoTime(run.until)} (${run.count} or more)`;
  const attempt = run.attempt > 1 ? `, attempt ${run.attempt}` : "";
  return `run of ${isoTime(run.at)}${range} ${run.state}${attempt}${run.note === null ? "" : `: ${run.note}`}`;
}

function isoTime(at: number): string {
  return new Date(at).toISOString();
}
