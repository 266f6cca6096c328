/**
 * Small durable records by compare-and-swap, bound to no session. The version is
 * Consul's modify index. Consul keeps it if a write changes nothing, so that each
 * write carries a text that nobody else's has.
 */
import type { CallOptions, Listing } from "../../seam/backend.js";
import type { Clock } from "../../seam/clock.js";
import type { Entry, RecordStore } from "../../seam/table.js";
import { ConclaveError } from "../../kit/errors.js";
import { listing, MOST_LISTED } from "../../kit/listing.js";
import { onAbort } from "../../kit/wait.js";
import { property } from "./client/json.js";
import type { ConsulClient, KeyValue } from "./client.js";
import type { Keys } from "./keys.js";
import type { Watches } from "./watches.js";

const LIMIT_MS = 5_000;

export class ConsulRecords implements RecordStore {
  readonly #client: ConsulClient;
  readonly #clock: Clock;
  readonly #watches: Watches;
  readonly #keys: Keys;

  constructor(client: ConsulClient, clock: Clock, watches: Watches, keys: Keys) {
    this.#client = client;
    this.#clock = clock;
    this.#watches = watches;
    this.#keys = keys;
  }

  async read(name: string, { signal }: CallOptions): Promise<Entry | null> {
    const { kvs } = await this.#client.read(
      { range: { key: this.#keys.record(name) } },
      { signal, limitMs: LIMIT_MS },
    );
    const kv = kvs[0];
    return kv === undefined ? null : { version: kv.modifyIndex, record: textOf(kv), current: true };
  }

  async write(
    name: string,
    expected: bigint | null,
    record: string,
    { signal }: CallOptions,
  ): Promise<Entry | null> {
    const key = this.#keys.record(name);
    const value = JSON.stringify({ conclave: 1, record, nonce: this.#clock.uniqueId() });
    const answer = await this.#client.transaction(
      [{ verb: "cas", key, index: expected ?? 0n, value, flags: 0n }],
      { signal, limitMs: LIMIT_MS },
    );
    return answer.committed ? { version: answer.modifyIndex, record } : null;
  }

  /** Indexes are those of the whole store: whatever is written later has a higher version. */
  async remove(name: string, expected: bigint, { signal }: CallOptions): Promise<boolean> {
    const key = this.#keys.record(name);
    const answer = await this.#client.transaction([{ verb: "delete-cas", key, index: expected }], {
      signal,
      limitMs: LIMIT_MS,
    });
    return answer.committed;
  }

  async list({ signal }: CallOptions): Promise<Listing> {
    const found = await this.#client.keys(this.#keys.records, { signal, limitMs: LIMIT_MS });
    const names = found.map((key) => this.#keys.recordOf(key)).filter((name) => name !== undefined);
    return listing(names.slice(0, MOST_LISTED), names.length <= MOST_LISTED);
  }

  async watch(name: string, wake: () => void, { signal }: CallOptions): Promise<void> {
    const key = this.#keys.record(name);
    const { index } = await this.#client.read({ range: { key } }, { signal, limitMs: LIMIT_MS });
    if (signal.aborted) return;
    wake();
    await new Promise<void>((resolve) => {
      const unwatch = this.#watches.watch(key, index, { seen: () => wake(), failed: () => wake() });
      onAbort(signal, () => {
        unwatch();
        resolve();
      });
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

function textOf({ key, value }: KeyValue): string {
  try {
    const record = property(JSON.parse(value), "record");
    if (typeof record === "string") return record;
  } catch {
    // said below
  }
  throw new ConclaveError(
    "conflict",
    `key ${JSON.stringify(key)} holds no record of this library: something else wrote it; remove the key`,
  );
}
