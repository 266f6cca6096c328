/** A lease held in a record: renewing, proclaiming and releasing are one guarded write each. */
import type { CallOptions, Extension, Hold, ReleaseOptions } from "../seam/backend.js";
import type { Entry, RecordStore } from "../seam/table.js";
import { readClocks } from "../kit/clock.js";
import { type Clock, type Reading } from "../seam/clock.js";
import { ConclaveError, isRetriable } from "../kit/errors.js";
import type { LeaseRecord } from "./lease.js";

/** How often one call retries after a write that changed the version but not the holder (label edits, our own late writes). */
const MOST_ATTEMPTS = 4;

export interface HeldLease {
  readonly key: string;
  readonly record: LeaseRecord & { readonly holder: string; readonly ttlMs: number };
  readonly version: bigint;
  readonly asked: Reading;
  /** Told the version of the record once it was given back. */
  readonly vacated?: ((version: bigint) => void) | undefined;
}

export class RecordHold implements Hold {
  readonly token: bigint;
  readonly asked: Reading;
  readonly ttlMs: number;
  readonly #clock: Clock;
  readonly #store: RecordStore<LeaseRecord>;
  readonly #key: string;
  readonly #vacated: ((version: bigint) => void) | undefined;
  #record: LeaseRecord;
  #version: bigint;
  /** A write of ours whose answer never came may still arrive: until then an absent record proves nothing. */
  #unresolved = false;
  #released = false;
  /** Calls go one after the other: two writes of ours on one version would refuse each other. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(clock: Clock, store: RecordStore<LeaseRecord>, lease: HeldLease) {
    this.#clock = clock;
    this.#store = store;
    this.#key = lease.key;
    this.token = lease.version;
    this.asked = lease.asked;
    this.ttlMs = lease.record.ttlMs;
    this.#vacated = lease.vacated;
    this.#version = lease.version;
    this.#record = { ...lease.record, token: lease.version };
  }

  renew(options: CallOptions): Promise<Extension | "lost"> {
    return this.#inTurn(() => this.#extend(options));
  }

  /** If it throws, whether the value was published is unknown; the next renewal publishes it, unless it was refused for good. */
  proclaim(value: string, options: CallOptions): Promise<Extension | "lost"> {
    return this.#inTurn(async () => {
      const before = this.#record;
      this.#record = { ...this.#record, value };
      try {
        return await this.#extend(options);
      } catch (error) {
        // Otherwise a value that the store rejects would make every later renewal fail.
        if (!isRetriable(error)) this.#record = before;
        throw error;
      }
    });
  }

  release(options: ReleaseOptions): Promise<void> {
    const { heir } = options;
    this.#released = true;
    return this.#inTurn(async () => {
      const vacant = { ...this.#record, holder: null, value: "", ...(heir !== undefined && { heir }) };
      const answer = await this.#write(vacant, options);
      // What was left to somebody else is not ours to take without a look.
      if (answer !== "lost" && heir === undefined) this.#vacated?.(this.#version);
    });
  }

  async #extend(options: CallOptions): Promise<Extension | "lost"> {
    if (this.#released) return "lost";
    return this.#write(this.#record, options);
  }

  /** Writes on the version we know; follows it while the record is still ours. */
  async #write(record: LeaseRecord, options: CallOptions): Promise<Extension | "lost"> {
    for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
      options.signal.throwIfAborted();
      const asked = readClocks(this.#clock);
      const written = await this.#send(record, options);
      if (written !== null) {
        this.#version = written.version;
        return { asked };
      }
      const entry = await this.#store.read(this.#key, options);
      if (this.#lost(entry)) return "lost";
      if (entry === null || !this.#ours(entry)) break;
      this.#version = entry.version;
    }
    throw new ConclaveError(
      "unavailable",
      `the record of election "${this.#key}" changed under the write; its state is not known yet`,
    );
  }

  async #send(record: LeaseRecord, options: CallOptions): Promise<Entry<LeaseRecord> | null> {
    try {
      return await this.#store.write(this.#key, this.#version, record, options);
    } catch (error) {
      this.#unresolved = true;
      throw error;
    }
  }

  /** Our term's record, whoever moved the version. The acquiring write has no token yet; its `since` is ours alone. */
  #ours(entry: Entry<LeaseRecord>): boolean {
    const { holder, token, since } = entry.record;
    if (holder !== this.#record.holder) return false;
    return token === null ? since === this.#record.since : token === this.token;
  }

  /**
   * Only what is certain. A version not newer than ours may be a stale read,
   * unless the store vouches that it is current: then ours was forgotten.
   */
  #lost(entry: Entry<LeaseRecord> | null): boolean {
    if (entry === null) return !this.#unresolved;
    return (entry.version > this.#version || entry.current === true) && !this.#ours(entry);
  }

  #inTurn<T>(call: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(call);
    this.#turn = result.catch(() => {});
    return result;
  }
}
