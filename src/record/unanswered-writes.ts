/**
 * A campaign was cancelled while its acquiring write had no answer. The write may
 * have been carried out, or may still be: then nobody leads, and every candidate
 * would wait for a lease that nobody renews. So it is looked for and undone,
 * guarded by its version, for as long as an answer may take. If this fails, the
 * record expires after its TTL.
 */
import type { Entry, RecordStore } from "../seam/table.js";
import type { Clock } from "../seam/clock.js";
import { StopSource } from "../kit/stop.js";
import { bounded, sleep } from "../kit/wait.js";
import type { LeaseRecord } from "./lease.js";

export interface UnansweredWrite {
  readonly key: string;
  /** What was written, and on which version. */
  readonly record: LeaseRecord;
  readonly expected: bigint | null;
  readonly attemptMs: number;
}

const READS = 4;

export class UnansweredWrites {
  readonly #clock: Clock;
  readonly #store: RecordStore<LeaseRecord>;
  readonly #running = new Set<Promise<void>>();

  constructor(clock: Clock, store: RecordStore<LeaseRecord>) {
    this.#clock = clock;
    this.#store = store;
  }

  undo(write: UnansweredWrite): void {
    const running = bounded(this.#clock, write.attemptMs, new StopSource(), "undoing a write", (signal) =>
      this.#undo(write, signal),
    )
      .catch(() => {}) // it runs out by itself
      .finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  /** When all are done, or have been given up. */
  async settled(): Promise<void> {
    await Promise.all(this.#running);
  }

  async #undo(write: UnansweredWrite, signal: AbortSignal): Promise<void> {
    const { key, attemptMs } = write;
    while (!signal.aborted) {
      const entry = await this.#store.read(key, { signal });
      if (isOurs(entry, write)) {
        const vacant = {
          ...entry.record,
          holder: null,
          value: "",
          token: entry.record.token ?? entry.version,
        };
        if ((await this.#store.write(key, entry.version, vacant, { signal })) !== null) return;
      } else if (isPast(entry, write)) {
        return;
      }
      await sleep(this.#clock, attemptMs / READS, signal);
    }
  }
}

/** Holder and `since` together are of this one write alone. */
function isOurs(entry: Entry<LeaseRecord> | null, { record }: UnansweredWrite): entry is Entry<LeaseRecord> {
  return entry?.record.holder === record.holder && entry.record.since === record.since;
}

/** Somebody wrote on the version that ours was to be written on: ours never will be. */
function isPast(entry: Entry<LeaseRecord> | null, { expected }: UnansweredWrite): boolean {
  return entry !== null && (expected === null || entry.version > expected);
}
