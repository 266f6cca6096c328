/** A store of one lease record whose calls can be watched, failed and answered late. */
import type { Backend, CallOptions } from "../../src/seam/backend.js";
import type { Entry, RecordStore } from "../../src/seam/table.js";
import { recordBackend } from "../../src/record/backend.js";
import type { RecordBackendOptions } from "../../src/record/backend-options.js";
import type { LeaseRecord } from "../../src/record/lease.js";
import type { Clock } from "../../src/seam/clock.js";
import { TableServer } from "../support/table.js";

type Hook = () => void | Promise<void>;

export class OneRecord implements RecordStore<LeaseRecord> {
  entry: Entry<LeaseRecord> | null = null;
  readonly written: LeaseRecord[] = [];
  reads = 0;
  writes = 0;
  closed = 0;
  /** Called before the store acts; what it throws means that nothing was done. */
  beforeRead: Hook = () => {};
  beforeWrite: Hook = () => {};
  /** Called after the store has acted; what it throws means that the answer was lost. */
  afterWrite: Hook = () => {};

  async read(_key: string, { signal }: CallOptions): Promise<Entry<LeaseRecord> | null> {
    signal.throwIfAborted();
    this.reads++;
    await this.beforeRead();
    return this.entry;
  }

  async write(
    _key: string,
    expected: bigint | null,
    record: LeaseRecord,
    { signal }: CallOptions,
  ): Promise<Entry<LeaseRecord> | null> {
    signal.throwIfAborted();
    this.writes++;
    await this.beforeWrite();
    const written = (this.entry?.version ?? null) === expected ? this.put(record) : null;
    if (written !== null) this.written.push(record);
    await this.afterWrite();
    return written;
  }

  /** Writes past everybody, as another process would. */
  put(record: LeaseRecord): Entry<LeaseRecord> {
    this.entry = { version: (this.entry?.version ?? 0n) + 1n, record };
    return this.entry;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.closed++;
  }
}

export function lease(over: Partial<LeaseRecord> = {}): LeaseRecord {
  return { holder: "a-1", ttlMs: 1_000, value: "v", since: 5, token: null, ...over };
}

export const never = new AbortController().signal;

export function openOne(store: OneRecord, clock: Clock, over: Partial<RecordBackendOptions> = {}): Backend {
  return recordBackend({
    name: "one",
    guarantees: {
      exclusion: "linearizable",
      expiry: "observer",
      token: "record",
      succession: "unordered",
      ttl: { minMs: 100, stepMs: 1 },
    },
    leases: store,
    records: new TableServer().texts("records"),
    clock,
    ...over,
  });
}
