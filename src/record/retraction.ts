/**
 * A candidacy was given up while its acquiring write was on the way. It may have
 * been carried out, or still be: then nobody leads, and everybody would wait for
 * a lease that nobody renews. So it is looked for and taken back, guarded by its
 * version, for as long as an answer may take. What slips through runs out.
 */
import type { Entry, RecordStore } from "../seam/table.js";
import type { Clock } from "../seam/clock.js";
import { Halt } from "../kit/stop.js";
import { bounded, sleep } from "../kit/wait.js";
import type { LeaseRecord } from "./lease.js";

export interface GivenUp {
  readonly key: string;
  /** What was written, and on which version. */
  readonly record: LeaseRecord;
  readonly expected: bigint | null;
  readonly attemptMs: number;
}

const LOOKS = 4;

export class Retractions {
  readonly #clock: Clock;
  readonly #store: RecordStore<LeaseRecord>;
  readonly #running = new Set<Promise<void>>();

  constructor(clock: Clock, store: RecordStore<LeaseRecord>) {
    this.#clock = clock;
    this.#store = store;
  }

  start(given: GivenUp): void {
    const running = bounded(this.#clock, given.attemptMs, new Halt(), "taking a record back", (signal) =>
      this.#takeBack(given, signal),
    )
      .catch(() => {}) // it runs out by itself
      .finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  /** When all are done, or have been given up. */
  async settled(): Promise<void> {
    await Promise.all(this.#running);
  }

  async #takeBack(given: GivenUp, signal: AbortSignal): Promise<void> {
    const { key, attemptMs } = given;
    while (!signal.aborted) {
      const entry = await this.#store.read(key, { signal });
      if (isOurs(entry, given)) {
        const vacant = {
          ...entry.record,
          holder: null,
          value: "",
          token: entry.record.token ?? entry.version,
        };
        if ((await this.#store.write(key, entry.version, vacant, { signal })) !== null) return;
      } else if (isPast(entry, given)) {
        return;
      }
      await sleep(this.#clock, attemptMs / LOOKS, signal);
    }
  }
}

/** Holder and `since` together are of this one write alone. */
function isOurs(entry: Entry<LeaseRecord> | null, { record }: GivenUp): entry is Entry<LeaseRecord> {
  return entry?.record.holder === record.holder && entry.record.since === record.since;
}

/** Somebody wrote on the version that ours was to be written on: ours never will be. */
function isPast(entry: Entry<LeaseRecord> | null, { expected }: GivenUp): boolean {
  return entry !== null && (expected === null || entry.version > expected);
}
