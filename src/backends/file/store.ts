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
import { StopSource } from "../../kit/stop.js";
import { onAbort, settlesWithin, sharedController, untilAborted } from "../../kit/wait.js";
import { ExpiringMap } from "../../kit/expiring-map.js";
import type { Envelope } from "./envelope.js";
import { encodeEnvelope, LARGEST_FILE } from "./envelope.js";
import type { OpenedDirectory } from "./directory.js";
import { explain } from "./faults.js";
import { errnoOf } from "../../files/numbered-links.js";
import type { FileSystem } from "./fs.js";
import type { GuardedRoot } from "./guarded.js";
import { trusted } from "./guarded.js";
import type { Listing as Names } from "./names.js";
import { decodeKey, encodeKey, FIRST, freshNumber, parseNumber } from "./names.js";
import type { Host, ProcessRule } from "./processes.js";
import type { Found, Numbered } from "./records.js";
import { Records } from "./records.js";
import type { Draft } from "./staging.js";
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

/** The version of a key that was read or written last: where it is, and who wrote it. */
interface Known {
  readonly version: bigint;
  readonly name: string;
  readonly mark: string;
  readonly id: string;
  readonly host: Host | undefined;
}

/** Longest that closing waits for old records to be removed. */
const LAST_PRUNING_MS = 1_000;

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
  readonly #known: ExpiringMap<Known>;
  readonly #closed = sharedController();
  /** Old records are removed while nobody waits for it. */
  readonly #pruning = new Set<Promise<void>>();

  constructor(options: FileStoreOptions) {
    const { root, processes } = options;
    this.#fs = options.fs;
    this.#clock = options.clock;
    this.#records = new ExpiringMap(options.clock);
    this.#known = new ExpiringMap(options.clock);
    this.#root = typeof root === "string" ? trusted(root) : root;
    this.#subdirectory = options.subdirectory ?? "elections";
    this.#durability = options.durability ?? (() => "content");
    this.#staging = new Staging(options.fs, options.clock);
    this.#processes = processes;
    if (processes === undefined) return;
    this.abandoned = async (key, version) => {
      const known = this.#known.get(key);
      return known?.version === version && processes.dead(known.host);
    };
  }

  async read(key: string, { signal }: CallOptions): Promise<Entry | null> {
    const { records } = await this.#open(key, signal);
    return explain(`reading the record of "${key}"`, signal, async () => {
      const found = await records.newest();
      return found === null ? null : this.#entry(key, found);
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
      const before = await this.#basis(key, records, expected);
      if (before === undefined) return null;
      const number = before === null ? freshNumber(this.#clock.wall(), records.highest) : before.number + 1n;
      const name = before === null ? FIRST : number.toString();
      if (before !== null) parseNumber(name); // refuses what no reader would accept
      const durability = before === null ? "content" : this.#durability(record);
      const envelope = { number, id: this.#clock.uniqueId(), host: this.#processes?.host(), record };
      const bytes = encoded(envelope, records.place);
      if (before === null) await records.make();
      const draft = await this.#staging.put(opened.path, envelope.id, bytes, durability === "content");
      let written: Names | undefined;
      try {
        signal.throwIfAborted(); // what was given up must not win later
        if (!(await records.link(draft.path, name))) return null;
        // From here on the record may be seen, so anything but success is "don't know".
        const settled = await records.settle({ name, number }, before, durability !== "none");
        await this.#root.assertSame(opened);
        // Not before: in another directory the numbers that are old here may be of a record that counts.
        written = settled;
      } finally {
        this.#prune(records, draft, written);
      }
      return this.#entry(key, { name, number, mark: draft.mark, envelope });
    });
  }

  async watch(key: string, wake: () => void, { signal }: CallOptions): Promise<void> {
    const ending = new AbortController();
    const end = (): void => ending.abort();
    const unlink = [onAbort(signal, end), onAbort(this.#closed.signal, end)];
    try {
      const { records } = await this.#open(key, signal);
      const { path } = records;
      await this.#fs.makeDirectory(path);
      if (ending.signal.aborted) return;
      const watching = this.#fs.watch(path, this.#news(key, wake, ending.signal), ending.signal);
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
    // Not longer, should the disk hang: what is left is swept one day.
    const tidied = Promise.all(this.#pruning).then(() => this.#staging.close());
    await settlesWithin(this.#clock, LAST_PRUNING_MS, new StopSource(), tidied);
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
    const known = records;
    if (!known.assertedIn(opened)) await explain(`opening "${path}"`, signal, () => known.assertIn(opened));
    return { records, opened };
  }

  /**
   * The record that a write is built on; `undefined`: it is not the newest, or
   * not the one that was judged. In a directory that was replaced by an older
   * copy numbers come again: to build on another record than the one that was
   * judged would overwrite its holder. So its mark is looked at. There is no
   * need to list what is there: if there is a newer record, then the next number
   * is taken, or this record has been pruned. Where a file system changes the mark
   * of a file that nobody wrote to, the record is read again.
   */
  async #basis(key: string, records: Records, expected: bigint | null): Promise<Numbered | null | undefined> {
    const known = this.#known.get(key);
    if (known !== undefined && expected !== null) {
      const { version, name, mark } = known;
      if (version !== expected) return undefined;
      if (await records.isSame(name, mark)) return { name, number: version };
    }
    const before = await records.newest();
    if ((before?.number ?? null) !== expected) return undefined;
    if (before === null || known === undefined) return before;
    return known.id !== "" && known.id === before.envelope.id ? before : undefined;
  }

  /** After a write, without anybody waiting: `written` is what was there, if the record is certainly there. */
  #prune(records: Records, draft: Draft, written: Names | undefined): void {
    const pruned = written === undefined ? Promise.resolve(false) : records.prune(written, draft.path);
    const pruning = pruned
      .catch(() => false) // what could not be removed is left for the next writer
      .then((reused) => (reused ? this.#staging.giveBack(draft) : this.#staging.drop(draft)))
      .finally(() => this.#pruning.delete(pruning));
    this.#pruning.add(pruning);
  }

  /** What a watch does with a changed name: a new record is read and handed on. The pruning of an old one is no news. */
  #news(key: string, wake: (entry?: Entry) => void, signal: AbortSignal): (name?: string) => void {
    let newest = 0n;
    const read = async (name: string, number: bigint): Promise<Entry | undefined> => {
      const { records } = await this.#open(key, signal);
      const found = await records.find(name, number);
      if (found === null || found.envelope.number !== number) return undefined;
      return this.#entry(key, found, (this.#known.get(key)?.version ?? 0n) < number);
    };
    return (name) => {
      if (name === undefined || !/^[1-9][0-9]{0,18}$/.test(name)) return wake();
      const number = BigInt(name);
      if (number <= newest) return;
      newest = number;
      const tell = (entry?: Entry): void => {
        if (number === newest) wake(entry);
      };
      read(name, number).then(tell, () => tell());
    };
  }

  #entry(key: string, { name, number, mark, envelope }: Found, newest = true): Entry {
    // A record under another number than its own was copied there by hand: whose it is, nobody knows.
    const genuine = envelope.number === number;
    if (newest)
      this.#known.set(key, {
        version: number,
        name,
        mark,
        id: envelope.id,
        host: genuine ? envelope.host : undefined,
      });
    return {
      version: number,
      record: genuine ? envelope.record : "",
      renewalId: `${number}/${envelope.id}`,
      current: true,
    };
  }
}

function encoded(envelope: Envelope, place: string): Uint8Array {
  const bytes = encodeEnvelope(envelope, place);
  if (bytes.length <= LARGEST_FILE) return bytes;
  throw new ConclaveError(
    "invalid",
    `a record of ${bytes.length} bytes was to be written; at most ${LARGEST_FILE} fit: shorten the value`,
  );
}
