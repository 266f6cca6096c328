/**
 * A fence in a store's own small records: the highest token, and if wanted the
 * data it protects, kept by compare-and-swap. Any backend brings the store:
 * `new RecordFence({ records: backend.records, name: "ledger" })`.
 */
import type { Entry, RecordStore } from "../seam/table.js";
import type { Clock } from "../seam/clock.js";
import { systemClock } from "../kit/clock.js";
import { ConclaveError, invalid, isRetriable } from "../kit/errors.js";
import type { Bearer, FencedResource, FenceOptions } from "../seam/fence.js";
import { checkName } from "../kit/names.js";
import { recordsOf } from "../kit/records.js";
import { bounded, sleep } from "../kit/wait.js";
import { assertFresh, checkToken, parseToken } from "../kit/token.js";

/** What a {@link RecordFence} is opened with. */
export interface RecordFenceOptions {
  /** Of a backend; refused if it keeps none. */
  readonly records: RecordStore | undefined;
  /** Name of the resource. Its record is called `fence.<name>`. */
  readonly name: string;
  /** Key of the record, where `fence.<name>` does not suit. */
  readonly key?: string | undefined;
  /** Longest a single request may take. Default 5 s. */
  readonly attemptMs?: number | undefined;
  readonly clock?: Clock | undefined;
}

/** What the resource holds: the newest leader's token, and the data of the last write. */
export interface FencedRecord {
  readonly token: bigint;
  /** `null` as long as nothing but checks came. */
  readonly data: string | null;
}

interface Stored extends FencedRecord {
  readonly ids: readonly string[];
}

/** What a leader may do to a fenced record under its token. */
export interface RecordActs {
  check(options?: FenceOptions): Promise<void>;
  write(change: Change, options?: FenceOptions): Promise<FencedRecord>;
}

/** The new data, or how it follows from the old. A function may be called more than once. */
export type Change = string | ((data: string | null) => string);

const FORMAT = 1;
const LARGEST_TEXT = 256 * 1024;
const DEFAULT_ATTEMPT_MS = 5_000;
/** Tries of a check whose answer got lost. */
const MOST_CHECKS = 3;
/** Writers a record names, so that one whose answer got lost can find itself. */
const REMEMBERED_WRITES = 8;
/** Lost races before we say that the record is too busy. Each of them was somebody else's success. */
const MOST_RACES = 1_000;

/** A fence on a backend's records: the check and the write are one step. */
export class RecordFence implements FencedResource<RecordActs> {
  readonly #records: RecordStore;
  readonly #key: string;
  readonly #attemptMs: number;
  readonly #clock: Clock;

  constructor(options: RecordFenceOptions) {
    this.#records = recordsOf(options.records, `the fence "${options.name}"`);
    this.#key = checkName(options.key ?? `fence.${options.name}`);
    this.#attemptMs = options.attemptMs ?? DEFAULT_ATTEMPT_MS;
    this.#clock = options.clock ?? systemClock;
  }

  /**
   * Always a write, even of what is there already: a read may be stale, only a
   * conditional write knows that nobody newer has come.
   */
  async check(token: bigint, options: FenceOptions = {}): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        await this.#swap(token, (data) => data, options);
        return;
      } catch (error) {
        // Nothing changes but the mark: to do it twice is to do it once.
        if (attempt === MOST_CHECKS || !isRetriable(error)) throw error;
      }
    }
  }

  /**
   * Check and write in one step. An error other than `StaleLeaderError` leaves
   * open whether it was written.
   */
  async write(token: bigint, change: Change, options: FenceOptions = {}): Promise<FencedRecord> {
    const next = typeof change === "string" ? () => change : change;
    return this.#swap(token, next, options);
  }

  /** What the store tells; perhaps not the newest. `null` = nothing yet. */
  async read(options: FenceOptions = {}): Promise<FencedRecord | null> {
    const entry = await this.#read(options.signal ?? new AbortController().signal);
    if (entry === null) return null;
    const { token, data } = decode(this.#key, entry.record);
    return { token, data };
  }

  bind(bearer: Bearer): RecordActs {
    return {
      check: async (options) => {
        bearer.assertHeld();
        return this.check(bearer.token, options);
      },
      write: async (change, options) => {
        bearer.assertHeld();
        return this.write(bearer.token, change, options);
      },
    };
  }

  async #swap(
    token: bigint,
    change: (data: string | null) => string | null,
    options: FenceOptions,
  ): Promise<FencedRecord> {
    checkToken(token);
    const signal = options.signal ?? new AbortController().signal;
    const id = this.#clock.uniqueId();
    for (let race = 0; race < MOST_RACES; race++) {
      const entry = await this.#read(signal);
      const current = entry === null ? null : decode(this.#key, entry.record);
      // A stale read shows an older token, never a newer one: what it refuses is refused for certain.
      assertFresh(token, current?.token ?? null);
      const ids = [...(current?.ids ?? []), id].slice(-REMEMBERED_WRITES);
      const data = change(current?.data ?? null);
      const text = encode(this.#key, { token, data, ids });
      if (await this.#write(entry?.version ?? null, text, id, signal)) return { token, data };
      if (race > 0) await sleep(this.#clock, this.#clock.random() * Math.min(race * 2, 50), signal);
    }
    throw new ConclaveError("unavailable", `record "${this.#key}" is written by too many at once; try again`);
  }

  /** Whether it was written. If the store does not know, the record itself may: it names its last writers. */
  async #write(expected: bigint | null, text: string, id: string, signal: AbortSignal): Promise<boolean> {
    try {
      const written = await this.#bounded("writing", signal, (s) =>
        this.#records.write(this.#key, expected, text, { signal: s }),
      );
      return written !== null;
    } catch (error) {
      if (!isRetriable(error)) throw error;
      const entry = await this.#read(signal).catch(() => null);
      if (entry !== null && decode(this.#key, entry.record).ids.includes(id)) return true;
      throw error; // not there *yet* is not a no
    }
  }

  #read(signal: AbortSignal): Promise<Entry | null> {
    return this.#bounded("reading", signal, (s) => this.#records.read(this.#key, { signal: s }));
  }

  #bounded<T>(doing: string, signal: AbortSignal, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return bounded(this.#clock, this.#attemptMs, signal, `${doing} record "${this.#key}"`, call);
  }
}

/** Nothing is written that could not be read again: nobody would get past it any more. */
function encode(key: string, { token, ids, data }: Stored): string {
  const text = JSON.stringify({ v: FORMAT, token: token.toString(), ids, data });
  if (text.length <= LARGEST_TEXT) return text;
  throw invalid(
    `record "${key}" would be ${text.length} characters long, more than ${LARGEST_TEXT}; nothing was written. Keep the data elsewhere`,
  );
}

/** What cannot be read is left alone: overwriting it might let an old leader back in. */
function decode(key: string, text: string): Stored {
  const foreign = (): ConclaveError =>
    new ConclaveError(
      "conflict",
      `record "${key}" is not a fence of this version; nothing was written. Remove it by hand, or use another name`,
    );
  if (text.length > LARGEST_TEXT) throw foreign();
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw foreign();
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) throw foreign();
  const { v, token, ids, data } = parsed as Record<string, unknown>;
  const number = parseToken(token);
  if (v !== FORMAT || number === undefined || (data !== null && typeof data !== "string")) throw foreign();
  if (!Array.isArray(ids) || !ids.every((id) => typeof id === "string")) throw foreign();
  return { token: number, ids, data };
}
