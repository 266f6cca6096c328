/** A server in miniature: a table with compare-and-swap, shared by all who connect. */
import type { CallOptions } from "../../src/seam/backend.js";
import type { Entry, RecordStore } from "../../src/seam/table.js";
import { onAbort } from "../../src/kit/wait.js";
import type { LeaseRecord } from "../../src/record/lease.js";

interface Row<R> {
  readonly entry: Entry<R>;
  readonly writtenAt: number;
}

const FIRST = 100n;

class Table<R> {
  readonly #rows = new Map<string, Row<R>[]>();
  readonly #watchers = new Set<{ readonly key: string; readonly wake: () => void }>();
  #version = FIRST;

  /** The newest row, or the one that was the newest so long ago. */
  row(key: string, lagMs = 0): Row<R> | undefined {
    return this.#rows.get(key)?.findLast(({ writtenAt }) => writtenAt <= performance.now() - lagMs);
  }

  swap(key: string, expected: bigint | null, record: R): Entry<R> | null {
    const rows = this.#rows.get(key) ?? [];
    if ((rows.at(-1)?.entry.version ?? null) !== expected) return null;
    const entry = { version: ++this.#version, record };
    this.#rows.set(key, [...rows.slice(-100), { entry, writtenAt: performance.now() }]);
    for (const watcher of this.#watchers) if (watcher.key === key) watcher.wake();
    return entry;
  }

  watch(key: string, wake: () => void, signal: AbortSignal): Promise<void> {
    const watcher = { key, wake };
    if (!signal.aborted) this.#watchers.add(watcher);
    wake();
    return new Promise((resolve) => {
      onAbort(signal, () => {
        this.#watchers.delete(watcher);
        resolve();
      });
    });
  }

  /** Rows and versions: as a table that was dropped and created anew. */
  forget(): void {
    this.#rows.clear();
    this.#version = FIRST;
  }
}

export interface TableOptions {
  /** Reads show what was there so long ago. Default 0. */
  readonly lagMs?: number;
  /** Whether its stores can be watched. Default: the engine must poll. */
  readonly watch?: boolean;
  /** The clock by which it times leases. Default: one that never jumps. */
  readonly clock?: () => number;
}

export class TableServer {
  readonly #options: TableOptions;
  readonly #texts = { leases: new Table<string>(), records: new Table<string>() };
  readonly #timed = new Table<LeaseRecord>();
  readonly #expiry = new Map<string, number>();
  #stepMs = 0;

  constructor(options: TableOptions = {}) {
    this.#options = options;
  }

  texts(name: "leases" | "records"): RecordStore {
    const table = this.#texts[name];
    return this.#store(table, (key) => table.row(key, this.#options.lagMs)?.entry ?? null);
  }

  /** Leases that the store itself times, as Redis and PostgreSQL do; `now` is the store's clock. */
  timedLeases(now = (): number => this.#now()): RecordStore<LeaseRecord> {
    const table = this.#timed;
    const store = this.#store(table, (key) => {
      const row = table.row(key);
      return row === undefined ? null : { ...row.entry, expiresInMs: (this.#expiry.get(key) ?? 0) - now() };
    });
    return {
      ...store,
      write: async (key, expected, record, options) => {
        const entry = await store.write(key, expected, record, options);
        if (entry !== null) this.#expiry.set(key, now() + (record.ttlMs ?? 0));
        return entry;
      },
    };
  }

  forget(): void {
    for (const table of [this.#texts.leases, this.#texts.records, this.#timed]) table.forget();
  }

  /** Its own clock jumps. */
  step(ms: number): void {
    this.#stepMs += ms;
  }

  #now(): number {
    return (this.#options.clock?.() ?? performance.now()) + this.#stepMs;
  }

  #store<R>(table: Table<R>, look: (key: string) => Entry<R> | null): RecordStore<R> {
    const arrive = async ({ signal }: CallOptions): Promise<void> => {
      await new Promise((resolve) => setImmediate(resolve));
      signal.throwIfAborted();
    };
    return {
      read: async (key, options) => (await arrive(options), look(key)),
      write: async (key, expected, record, options) => (
        await arrive(options),
        table.swap(key, expected, record)
      ),
      ...(this.#options.watch === true && {
        watch: (key: string, wake: () => void, { signal }: CallOptions) => table.watch(key, wake, signal),
      }),
      [Symbol.asyncDispose]: async () => {},
    };
  }
}
