/**
 * Records as numbered files. A record is written to a temp file elsewhere and
 * then linked under the next number: `link` is atomic and refuses a name that
 * exists, so of all writers that build on one record exactly one succeeds.
 */
import { join } from "node:path";
import type { CallOptions, Listing } from "../../seam/backend.js";
import type { Entry, RecordStore } from "../../seam/table.js";
import type { Clock } from "../../seam/clock.js";
import { ConclaveError } from "../../kit/errors.js";
import { listing } from "../../kit/listing.js";
import { onAbort, sharedController, untilAborted } from "../../kit/wait.js";
import { ExpiringMap } from "../../kit/expiring-map.js";
import { decodeEnvelope, encodeEnvelope, LARGEST_FILE } from "./envelope.js";
import type { OpenedDirectory } from "./directory.js";
import { explain } from "./faults.js";
import { errnoOf } from "../../files/numbered-links.js";
import type { FileSystem } from "./fs.js";
import type { GuardedRoot } from "./guarded.js";
import { trusted } from "./guarded.js";
import { decodeKey, encodeKey, FIRST, freshNumber, parseNumber } from "./names.js";
import type { Host, ProcessRule } from "./processes.js";
import type { Found } from "./records.js";
import { Records } from "./records.js";
import { Staging } from "./staging.js";

/** What must survive a crash of the machine: nothing, the number of the record, or its text too. */
export type Durability = "none" | "number" | "content";

export interface FileStoreOptions {
  readonly fs: FileSystem;
  readonly clock: Clock;
  /** Where the records live. Opened at every call: it may have been replaced, and a refusal can be mended. */
  readonly root: string | GuardedRoot;
  /** Sub-directory of this store's records. Default `elections`. */
  readonly subdirectory?: string;
  /** Default: the content of every record. First records always are. */
  readonly durability?: (record: string) => Durability;
  /** Lets holders that are certainly dead be succeeded at once. */
  readonly processes?: ProcessRule | undefined;
}

/** Who wrote the version of a key that was read last, and by which write. */
interface Author {
  readonly version: bigint;
  readonly id: string;
  readonly host: Host | undefined;
}

export class FileStore implements RecordStore {
  /** Absent without a rule: nobody need ask several times a second then. */
  readonly abandoned?: (key: string, version: bigint, options: CallOptions) => Promise<boolean>;
  readonly #fs: FileSystem;
  readonly #clock: Clock;
  readonly #root: GuardedRoot;
  readonly #subdirectory: string;
  readonly #durability: (record: string) => Durability;
  readonly #processes: ProcessRule | undefined;
  readonly #staging: Staging;
  readonly #records: ExpiringMap<Records>;
  readonly #authors: ExpiringMap<Author>;
  readonly #closed = sharedController();

  constructor(options: FileStoreOptions) {
    const { root, processes } = options;
    this.#fs = options.fs;
    this.#clock = options.clock;
    this.#records = new ExpiringMap(options.clock);
    this.#authors = new ExpiringMap(options.clock);
    this.#root = typeof root === "string" ? trusted(root) : root;
    this.#subdirectory = options.subdirectory ?? "elections";
    this.#durability = options.durability ?? (() => "content");
    this.#staging = new Staging(options.fs, options.clock);
    this.#processes = processes;
    if (processes === undefined) return;
    this.abandoned = async (key, version) => {
      const author = this.#authors.get(key);
      return author?.version === version && processes.dead(author.host);
    };
  }

  async read(key: string, { signal }: CallOptions): Promise<Entry | null> {
    const { records } = await this.#open(key, signal);
    return explain(`reading the record of "${key}"`, signal, async () => {
      const found = await records.newest();
      return found === null ? null : this.#entry(key, found.number, found.bytes);
    });
  }

  async write(
    key: string,
    expected: bigint | null,
    record: string,
    { signal }: CallOptions,
  ): Promise<Entry | null> {
    const { records, opened } = await this.#open(key, signal);
    return explain(`writing the record of "${key}"`, signal, async () => {
      const before = await records.newest();
      if ((before?.number ?? null) !== expected) return null;
      if (before !== null && !this.#isKnown(key, before)) return null;
      const number = before === null ? freshNumber(this.#clock.wall(), records.highest) : before.number + 1n;
      const name = before === null ? FIRST : number.toString();
      if (before !== null) parseNumber(name); // refuses what no reader would accept
      const durability = before === null ? "content" : this.#durability(record);
      const id = this.#clock.uniqueId();
      const bytes = encoded(number, id, this.#processes?.host(), record);
      if (before === null) await records.make();
      const temp = await this.#staging.put(opened.path, id, bytes, durability === "content");
      try {
        signal.throwIfAborted(); // what was given up must not win later
        if (!(await records.link(temp, name))) return null;
        // From here on the record may be seen, so anything but success is "don't know".
        await records.settle({ name, number }, before, durability !== "none");
        await this.#root.assertSame(opened);
      } finally {
        await this.#staging.drop(temp);
      }
      return this.#entry(key, number, bytes);
    });
  }

  async watch(key: string, wake: () => void, { signal }: CallOptions): Promise<void> {
    const ending = new AbortController();
    const end = (): void => ending.abort();
    const unlink = [onAbort(signal, end), onAbort(this.#closed.signal, end)];
    try {
      const { path } = (await this.#open(key, signal)).records;
      await this.#fs.makeDirectory(path);
      if (ending.signal.aborted) return;
      const watching = this.#fs.watch(path, onlyNews(wake), ending.signal);
      wake();
      await watching;
    } catch {
      // A hint that cannot be had is not a fault: whoever waits also polls.
    } finally {
      for (const release of unlink) release();
    }
  }

  /** Very long names are stored as a hash and cannot be read off the directory. */
  async list({ signal }: CallOptions): Promise<Listing> {
    const opened = await this.#directory(signal);
    return explain("listing the records", signal, async () => {
      const folders = await this.#fs.list(join(opened.path, this.#subdirectory)).catch((error: unknown) => {
        if (errnoOf(error) === "ENOENT") return []; // nobody has written yet
        throw error;
      });
      return listing(
        folders.flatMap((folder) => decodeKey(folder) ?? []),
        true,
      );
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed.abort();
  }

  async #directory(signal: AbortSignal): Promise<OpenedDirectory> {
    signal.throwIfAborted();
    if (this.#closed.signal.aborted) {
      throw new ConclaveError("state", "the file store is closed; open a new backend");
    }
    return untilAborted(signal, this.#root.open());
  }

  async #open(key: string, signal: AbortSignal): Promise<{ records: Records; opened: OpenedDirectory }> {
    const opened = await this.#directory(signal);
    const path = join(opened.path, this.#subdirectory, encodeKey(key));
    let records = this.#records.get(key);
    if (records?.path !== path) this.#records.set(key, (records = new Records(this.#fs, path)));
    return { records, opened };
  }

  /**
   * Whether this is the record that was read under its number. In a directory
   * that was replaced by an older copy numbers come again: to build on another
   * record than the one that was judged would overwrite its holder.
   */
  #isKnown(key: string, { number, bytes }: Found): boolean {
    const author = this.#authors.get(key);
    if (author?.version !== number) return true;
    return author.id === decodeEnvelope(bytes).id;
  }

  #entry(key: string, version: bigint, bytes: Uint8Array): Entry {
    const { number, id, host, record } = decodeEnvelope(bytes);
    // A record under another number than its own was copied there by hand: whose it is, nobody knows.
    const genuine = number === version;
    this.#authors.set(key, { version, id, host: genuine ? host : undefined });
    return { version, record: genuine ? record : "", renewalId: `${version}/${id}`, current: true };
  }
}

function encoded(number: bigint, id: string, host: Host | undefined, record: string): Uint8Array {
  const bytes = encodeEnvelope({ number, id, host, record });
  if (bytes.length <= LARGEST_FILE) return bytes;
  throw new ConclaveError(
    "invalid",
    `a record of ${bytes.length} bytes was to be written; at most ${LARGEST_FILE} fit: shorten the value`,
  );
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
