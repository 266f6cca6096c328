/** Small durable records bound to no lease: rows without an end. */
import { listing, MOST_LISTED } from "../../kit/listing.js";
import type { CallOptions, Listing } from "../../seam/backend.js";
import type { Entry, RecordStore } from "../../seam/table.js";
import { onAbort } from "../../kit/wait.js";
import type { Listener } from "./listener.js";
import type { Rows } from "./rows.js";

const PREFIX = "r:";

export class TextStore implements RecordStore {
  readonly #rows: Rows;
  readonly watch?: (key: string, wake: () => void, options: CallOptions) => Promise<void>;

  constructor(rows: Rows, listener: Listener | undefined) {
    this.#rows = rows;
    if (listener !== undefined)
      this.watch = (key, wake, { signal }) => watching(listener, PREFIX + key, () => wake(), signal);
  }

  async read(key: string, { signal }: CallOptions): Promise<Entry | null> {
    const row = await this.#rows.read(PREFIX + key, `reading record "${key}"`, signal);
    return row && { version: row.version, record: row.record, current: row.current };
  }

  async write(
    key: string,
    expected: bigint | null,
    record: string,
    { signal }: CallOptions,
  ): Promise<Entry | null> {
    const write = { key: PREFIX + key, expected, record, ttlMs: null, tell: true };
    const version = await this.#rows.write(write, `writing record "${key}"`, signal);
    return version === null ? null : { version, record, current: true };
  }

  remove(key: string, expected: bigint, { signal }: CallOptions): Promise<boolean> {
    return this.#rows.remove(PREFIX + key, expected, `removing record "${key}"`, signal);
  }

  async list({ signal }: CallOptions): Promise<Listing> {
    const names = await this.#rows.list(PREFIX, MOST_LISTED + 1, signal);
    return listing(names, names.length <= MOST_LISTED);
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

/** Listens until the signal aborts. */
export function watching(
  listener: Listener,
  key: string,
  wake: Parameters<Listener["add"]>[1],
  signal: AbortSignal,
): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  const stop = listener.add(key, wake);
  return new Promise((resolve) => {
    onAbort(signal, () => {
      stop();
      resolve();
    });
  });
}
