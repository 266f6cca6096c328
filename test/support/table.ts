/** A server in miniature: a table with compare-and-swap, shared by all who connect. No watch: the engine must poll. */
import type { CallOptions, Entry, RecordStore } from "../../src/core/backend.js";
import type { LeaseRecord } from "../../src/record/lease.js";

class Table<R> {
  readonly #rows = new Map<string, { readonly entry: Entry<R>; readonly writtenAt: number }>();
  #version = 100n;

  row(key: string): { readonly entry: Entry<R>; readonly writtenAt: number } | undefined {
    return this.#rows.get(key);
  }

  swap(key: string, expected: bigint | null, record: R, writtenAt: number): Entry<R> | null {
    if ((this.#rows.get(key)?.entry.version ?? null) !== expected) return null;
    const entry = { version: ++this.#version, record };
    this.#rows.set(key, { entry, writtenAt });
    return entry;
  }
}

export class TableServer {
  readonly #texts = { leases: new Table<string>(), records: new Table<string>() };
  readonly #timed = new Table<LeaseRecord>();

  texts(name: "leases" | "records"): RecordStore {
    const table = this.#texts[name];
    return store(table, (key) => table.row(key)?.entry ?? null, realTime);
  }

  /** Leases that the store itself times, as Redis and PostgreSQL do; `now` is the store's clock. */
  timedLeases(now = realTime): RecordStore<LeaseRecord> {
    const table = this.#timed;
    const look = (key: string): Entry<LeaseRecord> | null => {
      const row = table.row(key);
      if (row === undefined) return null;
      const expiresInMs = row.writtenAt + (row.entry.record.ttlMs ?? 0) - now();
      return { ...row.entry, expiresInMs };
    };
    return store(table, look, now);
  }
}

const realTime = (): number => performance.now();

function store<R>(
  table: Table<R>,
  look: (key: string) => Entry<R> | null,
  now: () => number,
): RecordStore<R> {
  const arrive = async ({ signal }: CallOptions): Promise<void> => {
    await new Promise((resolve) => setImmediate(resolve));
    signal.throwIfAborted();
  };
  return {
    read: async (key, options) => (await arrive(options), look(key)),
    write: async (key, expected, record, options) => (
      await arrive(options),
      table.swap(key, expected, record, now())
    ),
    [Symbol.asyncDispose]: async () => {},
  };
}
