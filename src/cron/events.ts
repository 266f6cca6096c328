/**
 * What a schedule tells. Listeners are told, never asked: what they throw
 * disturbs nothing. The same events go to `diagnostics_channel` under
 * `conclave:cron:<event>`.
 */
import { channel } from "node:diagnostics_channel";
import type { Run } from "./ledger.js";

/** What a {@link Schedule} tells its listeners. */
export interface CronEvents {
  /** A job has begun. */
  started: { readonly run: Run };
  /** A job has ended: `run.state` says how. */
  finished: { readonly run: Run; readonly error?: unknown };
  /** An instant was claimed and nobody can say that it was done, or it was given up. */
  missed: { readonly run: Run };
  /** One or more instants were deliberately not run. */
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

export class CronEmitter {
  readonly #schedule: string;
  readonly #listeners: { [E in CronEventName]: Set<CronListener<E>> } = {
    started: new Set(),
    finished: new Set(),
    missed: new Set(),
    skipped: new Set(),
    error: new Set(),
  };
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
    this.#schedule = schedule;
  }

  on<E extends CronEventName>(name: E, listener: CronListener<E>): () => void {
    this.#listeners[name].add(listener);
    return () => this.#listeners[name].delete(listener);
  }

  emit<E extends CronEventName>(name: E, event: CronEvents[E]): void {
    const diagnostics = channel(`conclave:cron:${name}`);
    if (diagnostics.hasSubscribers) diagnostics.publish({ schedule: this.#schedule, ...event });
    for (const listener of this.#listeners[name]) void tell(listener, event);
  }

  /** An instant passed over, or lost. */
  report(run: Run): void {
    if (run.state === "skipped") {
      this.metrics.skipped += run.count ?? 1;
      this.emit("skipped", { run });
    } else if (run.state === "missed") {
      this.metrics.missed++;
      this.emit("missed", { run });
    }
  }
}

async function tell<E extends CronEventName>(listener: CronListener<E>, event: CronEvents[E]): Promise<void> {
  await Promise.resolve();
  try {
    await (listener(event) as unknown);
  } catch {
    // A listener's fault is its own.
  }
}
