/**
 * What a schedule tells. Listeners are told, never asked: what they throw
 * disturbs nothing. The same events go to `diagnostics_channel` under
 * `conclave:cron:<event>`.
 */
import { Emitter } from "../kit/emitter.js";
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

  constructor(schedule: string) {
    super();
    this.#schedule = schedule;
  }

  /** A scheduled time passed over, or lost. */
  report(run: Run): void {
    if (run.state === "skipped") {
      this.metrics.skipped += run.count ?? 1;
      this.emit("skipped", { run });
    } else if (run.state === "missed") {
      this.metrics.missed++;
      this.emit("missed", { run });
    }
  }

  protected get prefix(): string {
    return "conclave:cron:";
  }

  protected get source(): object {
    return { schedule: this.#schedule };
  }

  /** What a listener throws is not reported: a schedule has no log. */
  protected threw(): void {}
}
