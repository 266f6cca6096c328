/** Leases and records as the engine wants them, over {@link Texts}. */
import type { CallOptions, Listing } from "../../seam/backend.js";
import type { Entry, RecordStore } from "../../seam/table.js";
import { ConclaveError } from "../../kit/errors.js";
import { decodeLease, encodeLease } from "../../record/codec.js";
import type { LeaseRecord } from "../../record/lease.js";
import type { Connection } from "./connection.js";
import type { Keys } from "./keys.js";
import { listKeys } from "./list.js";
import type { ServerChecks } from "./checks.js";
import type { Texts } from "./texts.js";

export interface StoreParts {
  readonly texts: Texts;
  readonly keys: Keys;
  readonly connection: Connection;
  readonly checks: ServerChecks;
  readonly quarantine: boolean;
}

export class RedisLeases implements RecordStore<LeaseRecord> {
  readonly #parts: StoreParts;

  constructor(parts: StoreParts) {
    this.#parts = parts;
  }

  async read(election: string, options: CallOptions): Promise<Entry<LeaseRecord> | null> {
    const { texts, keys } = this.#parts;
    const entry = await texts.read(keys.lease(election), `reading election "${election}"`, options);
    return entry === null ? null : decoded(entry);
  }

  async write(
    election: string,
    expected: bigint | null,
    record: LeaseRecord,
    options: CallOptions,
  ): Promise<Entry<LeaseRecord> | null> {
    const { texts, keys, checks, quarantine } = this.#parts;
    const what = `writing election "${election}"`;
    const text = encodeLease(record);
    const cluster = await checks.inCluster(options.signal);
    const written = await texts.write(
      keys.lease(election),
      expected,
      text,
      {
        ttlMs: record.ttlMs ?? undefined,
        // Only the acquiring write has no token yet.
        takesOver: record.holder !== null && record.token === null,
        quarantine,
        epoch: cluster ? undefined : keys.epoch,
      },
      { ...options, what },
    );
    if (written.kind === "not-current") return null;
    if (written.kind === "quarantine") throw inQuarantine(election, written.waitMs);
    if (quarantine && !written.told) checks.warnUntold();
    return { version: written.version, record, current: true, expiresInMs: record.ttlMs ?? undefined };
  }

  watch(election: string, wake: (entry?: Entry<LeaseRecord>) => void, options: CallOptions): Promise<void> {
    const { texts, keys } = this.#parts;
    return texts.watch(keys.lease(election), (entry) => wake(entry && decoded(entry)), options);
  }

  remove(election: string, expected: bigint, options: CallOptions): Promise<boolean> {
    const { texts, keys } = this.#parts;
    return texts.remove(keys.lease(election), expected, {
      ...options,
      what: `removing election "${election}"`,
    });
  }

  list(options: CallOptions): Promise<Listing> {
    return listKeys(this.#parts.connection, this.#parts.keys.leases, options);
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

/** Small durable records, bound to no lease. */
export class RedisRecords implements RecordStore {
  readonly #connection: Connection;
  readonly #texts: Texts;
  readonly #keys: Keys;

  constructor({ connection, texts, keys }: Pick<StoreParts, "connection" | "texts" | "keys">) {
    this.#connection = connection;
    this.#texts = texts;
    this.#keys = keys;
  }

  remove(name: string, expected: bigint, options: CallOptions): Promise<boolean> {
    return this.#texts.remove(this.#keys.record(name), expected, {
      ...options,
      what: `removing record "${name}"`,
    });
  }

  list(options: CallOptions): Promise<Listing> {
    return listKeys(this.#connection, this.#keys.records, options);
  }

  read(name: string, options: CallOptions): Promise<Entry | null> {
    return this.#texts.read(this.#keys.record(name), `reading record "${name}"`, options);
  }

  async write(
    name: string,
    expected: bigint | null,
    record: string,
    options: CallOptions,
  ): Promise<Entry | null> {
    const call = { ...options, what: `writing record "${name}"` };
    const written = await this.#texts.write(this.#keys.record(name), expected, record, {}, call);
    return written.kind === "written" ? { version: written.version, record, current: true } : null;
  }

  watch(name: string, wake: (entry?: Entry) => void, options: CallOptions): Promise<void> {
    return this.#texts.watch(this.#keys.record(name), wake, options);
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

function decoded(entry: Entry): Entry<LeaseRecord> {
  return { ...entry, record: decodeLease(entry.record) };
}

function inQuarantine(election: string, waitMs: number): ConclaveError {
  return new ConclaveError(
    "unavailable",
    `election "${election}": the Redis server was started, or became primary, less than a ttl ago and may have forgotten ` +
      `a leader that still acts; leadership is granted in ${Math.ceil(waitMs)} ms at the earliest`,
  );
}
