/**
 * The layout of redlock and ShedLock: a STRING that Redis itself removes when its
 * time is over. It stands for a lease while it is there, and nothing is
 * remembered when it is gone: so there are no fencing tokens. Values of others
 * are never changed, only waited for.
 */
import type { CallOptions } from "../../seam/backend.js";
import type { Clock } from "../../seam/clock.js";
import type { Entry, RecordStore } from "../../seam/table.js";
import { decodeLease, encodeLease } from "../../record/codec.js";
import type { LeaseRecord } from "../../record/lease.js";
import { unreadable } from "../../record/lease.js";
import { ExpiringMap } from "../../kit/expiring-map.js";
import type { Connection } from "./connection.js";
import { LOCK_READ, LOCK_WRITE } from "./scripts.js";
import type { Subscriber } from "./subscriber.js";

/** Our own values: the number of the write, then the record. */
const OWN = /^(\d{1,20}) (\{.*)$/s;
/** A lock of others without an end is looked at again after this long. */
const ENDLESS_MS = 24 * 60 * 60 * 1000;

interface Known {
  readonly version: bigint;
  readonly value: string;
}

export class RedisLocks implements RecordStore<LeaseRecord> {
  readonly #connection: Connection;
  readonly #subscriber: Subscriber;
  readonly #prefix: string;
  /** The value behind the version that was last read or written. */
  readonly #known: ExpiringMap<Known>;

  constructor(connection: Connection, subscriber: Subscriber, prefix: string, clock: Clock) {
    this.#connection = connection;
    this.#subscriber = subscriber;
    this.#prefix = prefix;
    this.#known = new ExpiringMap(clock);
  }

  async read(election: string, { signal }: CallOptions): Promise<Entry<LeaseRecord> | null> {
    const call = { what: `reading lock "${election}"`, signal };
    const answer = await this.#connection.run(LOCK_READ, [this.#key(election)], [], call);
    if (!Array.isArray(answer)) return null;
    const [value, left, now] = answer.map((item: unknown) => `${item as string | number}`);
    return this.#entry(election, value ?? "", Number(left), BigInt(now ?? 0));
  }

  async write(
    election: string,
    expected: bigint | null,
    record: LeaseRecord,
    { signal }: CallOptions,
  ): Promise<Entry<LeaseRecord> | null> {
    const known = this.#known.get(election);
    if (expected !== null && known?.version !== expected) return null;
    const text = record.holder === null ? "" : encodeLease(record);
    const args = [
      expected === null ? "" : known!.value,
      text,
      String(Math.ceil(record.ttlMs ?? ENDLESS_MS)),
      this.#channel(election),
      String((expected ?? -1n) + 1n),
    ];
    const call = { what: `writing lock "${election}"`, signal };
    const answer = await this.#connection.run(LOCK_WRITE, [this.#key(election)], args, call);
    if (answer === null || answer === undefined) return null;
    const number = `${answer as string | number}`;
    const version = BigInt(number);
    if (text === "") this.#known.delete(election);
    else this.#known.set(election, { version, value: `${number} ${text}` });
    return { version, record, current: true, expiresInMs: record.ttlMs ?? undefined };
  }

  watch(election: string, wake: () => void, { signal }: CallOptions): Promise<void> {
    return this.#subscriber.hear(
      this.#channel(election),
      () => wake(),
      () => wake(),
      signal,
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {}

  #entry(election: string, value: string, leftMs: number, now: bigint): Entry<LeaseRecord> {
    const own = OWN.exec(value);
    const last = this.#known.get(election);
    // A value of others has no number. As long as it stays the same, so does the one that it is given.
    const version = own ? BigInt(own[1]!) : last?.value === value ? last.version : now;
    this.#known.set(election, { version, value });
    const record = own ? decodeLease(own[2]!) : unreadable();
    // One more, since it is still there when nothing is left by whole milliseconds.
    const expiresInMs = leftMs < 0 ? ENDLESS_MS : leftMs + 1;
    return { version, record, current: true, renewalId: value, expiresInMs };
  }

  #key(election: string): string {
    return `${this.#prefix}${election}`;
  }

  #channel(election: string): string {
    const { keyPrefix, database } = this.#connection.driver;
    return `conclave:lock:${database}:${keyPrefix}${this.#key(election)}`;
  }
}
