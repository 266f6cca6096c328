/** Leases as rows: timed by the server's clock, granted and renewed by one statement each. */
import type { CallOptions, Listing } from "../../seam/backend.js";
import type { Clock } from "../../seam/clock.js";
import type { Entry, RecordStore } from "../../seam/table.js";
import { listing, MOST_LISTED } from "../../kit/listing.js";
import { decodeLease, encodeLease } from "../../record/codec.js";
import type { LeaseRecord } from "../../record/lease.js";
import { ExpiringMap } from "../../kit/expiring-map.js";
import { RenewalBatch } from "./batch.js";
import type { Listener, Notice } from "./listener.js";
import type { RowWrite, Rows } from "./rows.js";
import { watching } from "./texts.js";
import type { Timeline } from "./timeline.js";

const PREFIX = "l:";

export class LeaseStore implements RecordStore<LeaseRecord> {
  readonly #rows: Rows;
  readonly #batch: RenewalBatch;
  readonly #timeline: Timeline;
  /** What this process wrote last of each election: a record that says the same is a renewal. */
  readonly #written: ExpiringMap<LeaseRecord>;
  readonly watch?: NonNullable<RecordStore<LeaseRecord>["watch"]>;

  constructor(clock: Clock, rows: Rows, listener: Listener | undefined, timeline: Timeline) {
    this.#rows = rows;
    this.#batch = new RenewalBatch(rows);
    this.#timeline = timeline;
    this.#written = new ExpiringMap(clock);
    if (listener !== undefined)
      this.watch = (key, wake, { signal }) =>
        watching(listener, PREFIX + key, (notice) => wake(entryOf(notice)), signal);
  }

  async read(key: string, { signal }: CallOptions): Promise<Entry<LeaseRecord> | null> {
    const row = await this.#rows.read(PREFIX + key, `reading election "${key}"`, signal);
    if (row === null) return null;
    const { version, current, leftMs } = row;
    return { version, record: decodeLease(row.record), current, expiresInMs: leftMs };
  }

  async write(
    key: string,
    expected: bigint | null,
    record: LeaseRecord,
    { signal }: CallOptions,
  ): Promise<Entry<LeaseRecord> | null> {
    const renewal = expected !== null && isRenewal(this.#written.get(key), record);
    const write = {
      key: PREFIX + key,
      expected,
      record: encodeLease(record),
      ttlMs: record.ttlMs,
      // A commit with a notification waits for every other one: a renewal is worth none.
      tell: !renewal,
    };
    const version = renewal
      ? await this.#batch.add(write, signal)
      : await this.#send(key, record, write, signal);
    if (version === null) return null;
    this.#written.set(key, record);
    return { version, record, current: true, expiresInMs: record.ttlMs ?? undefined };
  }

  async remove(key: string, expected: bigint, { signal }: CallOptions): Promise<boolean> {
    this.#written.delete(key);
    return this.#rows.remove(PREFIX + key, expected, `removing election "${key}"`, signal);
  }

  async list({ signal }: CallOptions): Promise<Listing> {
    const names = await this.#rows.list(PREFIX, MOST_LISTED + 1, signal);
    return listing(names, names.length <= MOST_LISTED);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#written.clear();
  }

  #send(key: string, record: LeaseRecord, write: RowWrite, signal: AbortSignal): Promise<bigint | null> {
    const grants = record.holder !== null && record.token === null;
    if (grants) return this.#timeline.grant(write, key, signal);
    return this.#rows.write(write, `writing election "${key}"`, signal);
  }
}

/** What a notification brought. */
function entryOf(notice: Notice | undefined): Entry<LeaseRecord> | undefined {
  if (notice?.record === undefined) return undefined;
  return { version: notice.version, record: decodeLease(notice.record) };
}

/** The same leadership, and nothing new in it. */
function isRenewal(last: LeaseRecord | undefined, record: LeaseRecord): boolean {
  if (last === undefined || record.holder === null || record.token === null) return false;
  return last.holder === record.holder && last.since === record.since && last.value === record.value;
}
