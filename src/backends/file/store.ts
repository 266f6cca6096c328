/**
 * Records as numbered files. A record is written to a temp file elsewhere and
 * then linked under the next number: `link` is atomic and refuses a name that
 * exists, so of all who build on one record exactly one succeeds.
 *
 * What a name alone cannot prove: old records are pruned, so a writer that slept
 * long enough can create a number again that came and went meanwhile. Hence the
 * second look after the link, which demands that the record built upon is still
 * there (pruning goes from the oldest up: had our number been pruned before, its
 * predecessor would be gone) and that nothing newer is.
 */
import { dirname, join } from "node:path";
import type { CallOptions, Entry, RecordStore } from "../../core/backend.js";
import type { Clock } from "../../core/clock.js";
import { ConclaveError } from "../../core/errors.js";
import { onAbort } from "../../core/waiting.js";
import { decodeEnvelope, encodeEnvelope, LARGEST_FILE } from "./envelope.js";
import { explain } from "./faults.js";
import type { FileSystem } from "./fs.js";
import { errnoOf } from "./fs.js";
import type { Listing } from "./names.js";
import { encodeKey, FIRST, freshNumber, parseListing, parseNumber } from "./names.js";
import type { Host, ProcessRule } from "./processes.js";
import { Staging } from "./staging.js";

export interface FileStoreOptions {
  readonly fs: FileSystem;
  readonly clock: Clock;
  /** The directory of the room: checked and private. Asked for at every call, so that a refusal can be mended. */
  readonly room: string | (() => Promise<string>);
  /** Sub-directory of this store's records. Default `elections`. */
  readonly shelf?: string;
  /**
   * Whether a record must survive a crash of the machine: its number always
   * does then (see `#sync`), and with `"content"` its text too. Default: `"content"`.
   */
  readonly durability?: (record: string) => Durability;
  /** Lets holders that are certainly dead be succeeded at once. */
  readonly processes?: ProcessRule | undefined;
}

export type Durability = "none" | "number" | "content";

/**
 * A listing is not atomic. With sixteen records kept, one that sees none of
 * those it should have seen lasted as long as sixteen writes.
 */
const KEEP = 16;
const MOST_READS = 4;

/** A record as it lies in its directory. */
interface Found {
  readonly name: string;
  readonly number: bigint;
}

/** What this process knows of one key. */
interface Memory {
  /** Highest number seen: a fresh start goes above it, whatever the wall clock says. */
  highest: bigint;
  /** Highest number known to be on the disk. */
  durable: bigint;
  /** Who wrote the record read last. */
  author?: { readonly version: bigint; readonly host: Host | undefined };
}

export class FileStore implements RecordStore {
  readonly abandoned?: (key: string, version: bigint, options: CallOptions) => Promise<boolean>;
  /** How many records of a key are kept. */
  protected readonly keep: number = KEEP;
  readonly #fs: FileSystem;
  readonly #clock: Clock;
  readonly #room: () => Promise<string>;
  readonly #shelf: string;
  readonly #durability: (record: string) => Durability;
  readonly #processes: ProcessRule | undefined;
  readonly #staging: Staging;
  readonly #memory = new Map<string, Memory>();
  readonly #closed = new AbortController();

  constructor(options: FileStoreOptions) {
    const { room } = options;
    this.#fs = options.fs;
    this.#clock = options.clock;
    this.#staging = new Staging(options.fs, options.clock);
    this.#room = typeof room === "string" ? () => Promise.resolve(room) : room;
    this.#shelf = options.shelf ?? "elections";
    this.#durability = options.durability ?? (() => "content");
    const processes = options.processes;
    this.#processes = processes;
    if (processes !== undefined) {
      this.abandoned = async (key, version) => {
        const author = this.#memory.get(key)?.author;
        return author?.version === version && processes.dead(author.host);
      };
    }
  }

  async read(key: string, { signal }: CallOptions): Promise<Entry | null> {
    const directory = await this.#open(key, signal);
    return explain(`reading the record of "${key}"`, signal, async () => {
      for (let attempt = 0; attempt < MOST_READS; attempt++) {
        signal.throwIfAborted();
        const listing = await this.#list(directory);
        const name = listing.numbers[0]?.toString() ?? (listing.first ? FIRST : null);
        if (name === null) return null;
        const bytes = await this.#content(join(directory, name));
        if (bytes !== null) return this.#entry(key, name, bytes);
        // Pruned between the listing and the look: by then there are sixteen newer ones. List again.
      }
      throw new ConclaveError("unavailable", "records came and went faster than they could be read; try again");
    });
  }

  async write(key: string, expected: bigint | null, record: string, { signal }: CallOptions): Promise<Entry | null> {
    const directory = await this.#open(key, signal);
    return explain(`writing the record of "${key}"`, signal, async () => {
      const before = await this.#newest(directory);
      if ((before?.number ?? null) !== expected) return null;
      const memory = this.#remember(key, before?.number ?? 0n);
      const number = before === null ? freshNumber(this.#clock.wall(), memory.highest) : before.number + 1n;
      const name = before === null ? FIRST : parsed(number);
      const durability = before === null ? "content" : this.#durability(record);
      const id = this.#clock.uniqueId();
      const bytes = encodeEnvelope({ number, id, host: this.#processes?.host(), record });
      if (bytes.length > LARGEST_FILE) {
        throw new ConclaveError("invalid", `a record of ${bytes.length} bytes was to be written; at most ${LARGEST_FILE} are, so shorten the value`);
      }
      if (before === null) await this.#makeDirectory(directory);
      const temp = await this.#staging.put(await this.#room(), id, bytes, durability === "content");
      try {
        signal.throwIfAborted(); // what was given up must not win later
        if (!(await this.#fs.link(temp, join(directory, name)))) return null;
        // From here on the record may be seen, so anything but success is "don't know".
        await this.#settle(directory, { name, number }, before, durability !== "none", memory);
      } finally {
        await this.#staging.drop(temp);
      }
      return this.#entry(key, name, bytes);
    });
  }

  async watch(key: string, wake: () => void, { signal }: CallOptions): Promise<void> {
    const ending = new AbortController();
    const unlink = [onAbort(signal, () => ending.abort()), onAbort(this.#closed.signal, () => ending.abort())];
    try {
      const directory = await this.#open(key, signal);
      await this.#fs.makeDirectory(directory);
      if (ending.signal.aborted) return;
      const watching = this.#fs.watch(directory, onlyNews(wake), ending.signal);
      wake();
      await watching;
    } catch {
      // A hint that cannot be had is not a fault: whoever waits also polls.
    } finally {
      for (const release of unlink) release();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed.abort();
  }

  /** The second look: throws unless `written` is the newest and was built on what is still there. */
  protected confirm(after: Listing, written: { name: string; number: bigint }, before: { name: string } | null): void {
    const { numbers, first } = after;
    const newest = numbers[0]?.toString() ?? (first ? FIRST : null);
    const grounded =
      before === null ? numbers.length === 0 : before.name === FIRST ? first : numbers.includes(BigInt(before.name));
    if (newest === written.name && grounded) return;
    throw new ConclaveError(
      "unavailable",
      `record ${written.number} was written, but ${newest === written.name ? "what it was built on is gone" : `the newest is now ${newest ?? "none"}`}; ` +
        "read again to learn who wrote last",
    );
  }

  /** After the link: make the number durable if a token may depend on it, look again, and tidy up. */
  async #settle(directory: string, written: Found, before: Found | null, durable: boolean, memory: Memory): Promise<void> {
    if (durable) await this.#sync(directory, written.number, memory);
    const after = await this.#list(directory);
    this.confirm(after, written, before);
    if (written.number > memory.highest) memory.highest = written.number;
    await this.#prune(directory, after, memory);
  }

  /**
   * Which writes wait for the disk. A token is the number of an acquiring write;
   * it comes back after a crash of the machine only if no record with that number
   * or a higher one is left. So the *name* of an acquiring write must be on the
   * disk before the office is taken (its content may be lost: an unreadable
   * record still counts). Renewals and releases hand out no token and need not
   * wait, provided the acquiring record is not pruned before a later name is on
   * the disk: hence the check in `#prune`, one wait in sixteen renewals.
   */
  async #sync(directory: string, newest: bigint, memory: Memory): Promise<void> {
    await this.#fs.syncDirectory(directory);
    if (newest > memory.durable) memory.durable = newest;
  }

  /** From the oldest up, one after the other (see `confirm`). What cannot be removed is left for the next writer. */
  async #prune(directory: string, { numbers, first }: Listing, memory: Memory): Promise<void> {
    const [newest] = numbers;
    const old = numbers.slice(this.keep).reverse();
    if (newest === undefined || (old.length === 0 && !(first && numbers.length >= this.keep))) return;
    try {
      const highestOld = old.at(-1) ?? 0n;
      if (memory.durable <= highestOld) await this.#sync(directory, newest, memory);
      if (first && numbers.length >= this.keep) await this.#fs.remove(join(directory, FIRST));
      for (const number of old) await this.#fs.remove(join(directory, number.toString()));
    } catch {
      // The write has succeeded; leftovers are no reason to call it anything else.
    }
  }

  async #open(key: string, signal: AbortSignal): Promise<string> {
    signal.throwIfAborted();
    if (this.#closed.signal.aborted) throw new ConclaveError("state", "the file store is closed; open a new backend");
    const name = encodeKey(key);
    return join(await this.#room(), this.#shelf, name);
  }

  /** The directory of a key that has no record yet; its name must not vanish with the machine's memory either. */
  async #makeDirectory(directory: string): Promise<void> {
    const shelf = dirname(directory);
    await this.#fs.makeDirectory(shelf);
    await this.#fs.makeDirectory(directory);
    await this.#fs.syncDirectory(shelf);
  }

  async #list(directory: string): Promise<Listing> {
    try {
      return parseListing(await this.#fs.list(directory));
    } catch (error) {
      if (errnoOf(error) === "ENOENT") return { numbers: [], first: false };
      throw error;
    }
  }

  async #newest(directory: string): Promise<Found | null> {
    for (let attempt = 0; attempt < MOST_READS; attempt++) {
      const { numbers, first } = await this.#list(directory);
      const [number] = numbers;
      if (number !== undefined) return { name: number.toString(), number };
      if (!first) return null;
      const bytes = await this.#content(join(directory, FIRST));
      if (bytes !== null) return { name: FIRST, number: numberOfFirst(bytes) };
    }
    throw new ConclaveError("unavailable", "records came and went faster than they could be read; try again");
  }

  /** What is not a regular file of ours reads as nothing: a record, but an unreadable one. */
  async #content(path: string): Promise<Uint8Array | null> {
    try {
      return await this.#fs.read(path, LARGEST_FILE + 1);
    } catch (error) {
      if (error instanceof ConclaveError && error.code === "conflict") return new Uint8Array();
      throw error;
    }
  }

  #entry(key: string, name: string, bytes: Uint8Array): Entry {
    const version = name === FIRST ? numberOfFirst(bytes) : BigInt(name);
    const decoded = decodeEnvelope(bytes);
    // A record under another number than its own was copied there by hand: whose it is, nobody knows.
    const record = decoded.number === version ? decoded.record : "";
    const memory = this.#remember(key, version);
    memory.author = { version, host: decoded.number === version ? decoded.host : undefined };
    return { version, record, mark: `${version}/${decoded.id}` };
  }

  #remember(key: string, number: bigint): Memory {
    let memory = this.#memory.get(key);
    if (memory === undefined) this.#memory.set(key, (memory = { highest: 0n, durable: 0n }));
    if (number > memory.highest) memory.highest = number;
    return memory;
  }
}

/** The pruning of an old record changes the directory too, but is no news. */
function onlyNews(wake: () => void): (name?: string) => void {
  let newest = 0n;
  return (name) => {
    if (name !== undefined && /^[1-9][0-9]{0,18}$/.test(name)) {
      if (BigInt(name) <= newest) return;
      newest = BigInt(name);
    }
    wake();
  };
}

/** The file name of a number, which must not outgrow what readers accept. */
function parsed(number: bigint): string {
  return (parseNumber(number.toString()) ?? number).toString();
}

function numberOfFirst(bytes: Uint8Array): bigint {
  const { number } = decodeEnvelope(bytes);
  if (number !== null) return number;
  throw new ConclaveError(
    "conflict",
    `the file "${FIRST}" is the only record of this election and does not tell its number, so whether someone leads is not known; ` +
      "when nobody does, remove it",
  );
}
