/**
 * What operators ask of an election: one small record in its store, beside the
 * leases and bound to none. `conclave resign`, `transfer` and `pause` write it;
 * leaders that were told to (`controls: true`) follow it, and candidates look at
 * it before they lead. It decides nothing about who may lead: losing it, or
 * reading it late, costs a request, never exclusion.
 */
import type { CallOptions } from "../seam/backend.js";
import type { Clock } from "../seam/clock.js";
import type { Entry, RecordStore } from "../seam/table.js";
import { ConclaveError } from "../kit/errors.js";
import { recordKey } from "../kit/names.js";
import { bounded, sleep } from "../kit/wait.js";
import { decodeControls, EMPTY, encodeControls, NO_CONTROLS } from "./codec.js";
import type { Controls } from "./codec.js";

/** First part of the record's key: `control.<election>`. */
export const CONTROL = "control";

/** Lost races before the record counts as too busy. Each was somebody else's success. */
const MOST_RACES = 20;

export interface ControlRecordOptions {
  readonly records: RecordStore;
  readonly election: string;
  readonly clock: Clock;
  /** Longest a single request may take. */
  readonly attemptMs: number;
}

export class ControlRecord {
  readonly election: string;
  readonly clock: Clock;
  readonly #records: RecordStore;
  readonly #key: string;
  readonly #attemptMs: number;

  constructor({ records, election, clock, attemptMs }: ControlRecordOptions) {
    this.election = election;
    this.clock = clock;
    this.#records = records;
    this.#key = recordKey(CONTROL, election);
    this.#attemptMs = attemptMs;
  }

  /** Whether the store pushes changes; without it the record has to be read again and again. */
  get pushes(): boolean {
    return this.#records.watch !== undefined;
  }

  /** What is asked now. Throws `conflict` for a record that this version cannot read. */
  async read(options: CallOptions): Promise<Controls> {
    return this.#decode(await this.#read(options.signal));
  }

  /**
   * Changes the record by compare-and-swap; `null` leaves it as it is. Resolves
   * with what is stored then. `change` may be called more than once. After an
   * error it is not known whether it was written.
   */
  async change(change: (now: Controls) => Controls | null, { signal }: CallOptions): Promise<Controls> {
    for (let race = 0; race < MOST_RACES; race++) {
      const entry = await this.#read(signal);
      const now = this.#decode(entry);
      const next = change(now);
      if (next === null) return now;
      const text = encodeControls(next);
      const expected = entry?.version ?? null;
      const written = await this.#bounded("writing", signal, (s) =>
        this.#records.write(this.#key, expected, text, { signal: s }),
      );
      if (written !== null) return next;
      await sleep(this.clock, this.clock.random() * Math.min(race * 5, 50), signal);
      signal.throwIfAborted();
    }
    throw new ConclaveError(
      "unavailable",
      `the control record of election "${this.election}" is written by too many at once; try again`,
    );
  }

  /** The store's own watch: `wake` whenever the record may have changed. Ends early where there is none. */
  async watch(wake: () => void, { signal }: CallOptions): Promise<void> {
    await this.#records.watch?.(this.#key, () => wake(), { signal });
  }

  #decode(entry: Entry | null): Controls {
    return entry === null || entry.record === EMPTY
      ? NO_CONTROLS
      : decodeControls(entry.record, this.election);
  }

  #read(signal: AbortSignal): Promise<Entry | null> {
    return this.#bounded("reading", signal, (s) => this.#records.read(this.#key, { signal: s }));
  }

  #bounded<T>(doing: string, signal: AbortSignal, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const what = `${doing} the control record of election "${this.election}"`;
    return bounded(this.clock, this.#attemptMs, signal, what, call);
  }
}
