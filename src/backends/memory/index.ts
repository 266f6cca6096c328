/**
 * Elections within one process: for tests, for development, and for code that
 * wants the same API whether or not there is a second copy of it.
 *
 * Candidates exclude each other only if they share the backend object.
 */
import type { BackendWithRecords, CallOptions, Listing } from "../../seam/backend.js";
import type { Entry, RecordStore } from "../../seam/table.js";
import type { Clock } from "../../seam/clock.js";
import { systemClock } from "../../kit/clock.js";
import { onAbort } from "../../kit/wait.js";
import { recordBackend } from "../../record/backend.js";
import { textLeases } from "../../record/codec.js";

class MemoryStore implements RecordStore {
  readonly #entries = new Map<string, Entry>();
  readonly #watchers = new Map<string, Set<() => void>>();
  #version = 0n;

  async read(key: string, { signal }: CallOptions): Promise<Entry | null> {
    signal.throwIfAborted();
    return this.#entries.get(key) ?? null;
  }

  async write(
    key: string,
    expected: bigint | null,
    record: string,
    { signal }: CallOptions,
  ): Promise<Entry | null> {
    signal.throwIfAborted();
    if ((this.#entries.get(key)?.version ?? null) !== expected) return null;
    const entry = { version: ++this.#version, record, current: true };
    this.#entries.set(key, entry);
    for (const wake of this.#watchers.get(key) ?? []) wake();
    return entry;
  }

  watch(key: string, wake: () => void, { signal }: CallOptions): Promise<void> {
    const watchers = this.#watchers.get(key) ?? new Set();
    this.#watchers.set(key, watchers.add(wake));
    wake();
    return new Promise((resolve) => {
      onAbort(signal, () => {
        watchers.delete(wake);
        if (watchers.size === 0 && this.#watchers.get(key) === watchers) this.#watchers.delete(key);
        resolve();
      });
    });
  }

  async remove(key: string, expected: bigint, { signal }: CallOptions): Promise<boolean> {
    signal.throwIfAborted();
    if (this.#entries.get(key)?.version !== expected) return false;
    this.#entries.delete(key); // versions are counted for all keys together, and go on
    for (const wake of this.#watchers.get(key) ?? []) wake();
    return true;
  }

  async list({ signal }: CallOptions): Promise<Listing> {
    signal.throwIfAborted();
    return { names: [...this.#entries.keys()], complete: true };
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

/** A backend that lives and dies with this process. Share the object to share the election. */
export function memoryBackend(options: { readonly clock?: Clock } = {}): BackendWithRecords {
  return recordBackend({
    name: "memory",
    guarantees: {
      exclusion: "linearizable",
      expiry: "observer",
      token: "record",
      succession: "unordered",
      ttl: { minMs: 100, stepMs: 1 },
    },
    leases: textLeases(new MemoryStore()),
    records: new MemoryStore(),
    clock: options.clock ?? systemClock,
  });
}
