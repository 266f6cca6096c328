/**
 * The numbered records of one key: which is the newest, whether a new one took
 * its place for certain, which must be on the disk, and which can go.
 *
 * What a name alone cannot prove: old records are pruned, so a writer that slept
 * long enough can create a number again that came and went meanwhile. Hence the
 * second look after the link. It demands that nothing newer is there, and that
 * the record built upon still is: pruning goes from the oldest up, so had our
 * number been pruned before, its predecessor would be gone.
 */
import { basename, dirname, join } from "node:path";
import { ConclaveError } from "../../kit/errors.js";
import type { Decoded } from "./envelope.js";
import { decodeEnvelope, LARGEST_FILE } from "./envelope.js";
import type { FileRead, FileSystem } from "./fs.js";
import { errnoOf, KEPT_NUMBERS } from "../../files/numbered-links.js";
import type { Listing } from "./names.js";
import { FIRST, parseListing } from "./names.js";

const MOST_LOOKS = 4;

/** The name of a record and its number. */
export interface Numbered {
  readonly name: string;
  readonly number: bigint;
}

/** A record as it lies in the directory. */
export interface Found extends Numbered {
  readonly mark: string;
  readonly envelope: Decoded;
}

export class Records {
  readonly path: string;
  /** What its records are written for: the last two names of the path, whatever the directory above is called. */
  readonly place: string;
  readonly #fs: FileSystem;
  #highest = 0n;
  /** Highest number known to be on the disk. */
  #durable = 0n;
  /** The opened directory in which `path` was seen to be a directory of ours. */
  #assertedIn: object | undefined;

  constructor(fs: FileSystem, path: string) {
    this.#fs = fs;
    this.path = path;
    this.place = `${basename(dirname(path))}/${basename(path)}`;
  }

  /** Highest number seen: a fresh start goes above it, whatever the wall clock says. */
  get highest(): bigint {
    return this.#highest;
  }

  /** Whether {@link assertIn} was done in this directory, which is safe: below it nobody else can write. */
  assertedIn(opened: object): boolean {
    return this.#assertedIn === opened;
  }

  /** Refuses what was planted in the place of the directory. */
  async assertIn(opened: object): Promise<void> {
    try {
      await this.#fs.assertDirectory(this.path);
      this.#assertedIn = opened;
    } catch (error) {
      if (errnoOf(error) !== "ENOENT") throw error;
    }
  }

  /** The newest record. */
  async newest(): Promise<Found | null> {
    let doubtful: Found | undefined;
    for (let look = 0; look < MOST_LOOKS; look++) {
      const { numbers, first } = await this.#list();
      const [number] = numbers;
      if (number === undefined && !first) return null;
      const found = await this.find(number?.toString() ?? FIRST, number);
      // Pruned between the listing and the look: by then there are sixteen newer ones.
      if (found === null) continue;
      // Perhaps pruned and written over since the listing; if it is still the newest, it is what it is.
      const same = doubtful?.name === found.name && doubtful.mark === found.mark;
      if (found.envelope.number === found.number || same) {
        this.#seen(found);
        return found;
      }
      doubtful = found;
    }
    throw new ConclaveError("unavailable", "records came and went faster than they could be read; try again");
  }

  /** The record under this name; `null` = there is none. */
  async find(name: string, number?: bigint): Promise<Found | null> {
    const file = await this.#content(name);
    if (file === null) return null;
    const envelope = decodeEnvelope(file.data, this.place);
    return { name, number: number ?? numberOfFirst(envelope), mark: file.mark, envelope };
  }

  /** Whether the record under this name is still the one with this mark. */
  async isSame(name: string, mark: string): Promise<boolean> {
    return (await this.#fs.mark(join(this.path, name))) === mark;
  }

  /** Makes the directory for a first record. Its name must not vanish with the machine's memory either. */
  async make(): Promise<void> {
    const subdirectory = dirname(this.path);
    await this.#fs.makeDirectory(subdirectory);
    await this.#fs.makeDirectory(this.path);
    await this.#fs.syncDirectory(subdirectory);
  }

  /** `false` = that name is taken, and nothing was written. */
  link(temp: string, name: string): Promise<boolean> {
    return this.#fs.link(temp, join(this.path, name));
  }

  /** After the link: make the number durable if a token may depend on it, and look again. */
  async settle(written: Numbered, before: Numbered | null, durable: boolean): Promise<Listing> {
    const [after] = await Promise.all([this.#list(), durable ? this.#sync(written.number) : undefined]);
    confirm(after, written, before);
    this.#seen(written);
    return after;
  }

  /**
   * Which writes wait for the disk. A token is the number of an acquiring write;
   * it comes back after a crash of the machine only if no record with that number
   * or a higher one is left. So the *name* of an acquiring write must be on the
   * disk before the term begins (its content may be lost: an unreadable
   * record still counts). Renewals and releases hand out no token and need not
   * wait, provided the acquiring record is not pruned before a later name is on
   * the disk: hence the check in `#prune`, one wait in sixteen renewals.
   */
  async #sync(newest: bigint): Promise<void> {
    await this.#fs.syncDirectory(this.path);
    if (newest > this.#durable) this.#durable = newest;
  }

  /**
   * Removes what is too old, from the oldest up, one after the other: the second
   * look counts on it. The oldest number gets the name of the draft of the record
   * that was just written, which takes that name off the record: an old record
   * becomes the next draft. `false` = nothing did. The first record never does:
   * its number is inside, so a slow reader could not tell that it is another's.
   */
  async prune({ numbers, first }: Listing, draft: string): Promise<boolean> {
    const kept = numbers.slice(0, KEPT_NUMBERS);
    const old = numbers.slice(KEPT_NUMBERS).toReversed();
    const [newest, oldestKept] = [kept[0], kept.at(-1)];
    if (newest === undefined || oldestKept === undefined) return false;
    if (old.length === 0 && !(first && kept.length === KEPT_NUMBERS)) return false;
    if (this.#durable < oldestKept) await this.#sync(newest);
    if (first) await this.#fs.remove(join(this.path, FIRST));
    let reused = false;
    for (const number of old) {
      const path = join(this.path, number.toString());
      if (reused) await this.#fs.remove(path);
      else reused = await this.#fs.rename(path, draft);
    }
    return reused;
  }

  async #list(): Promise<Listing> {
    try {
      return parseListing(await this.#fs.list(this.path));
    } catch (error) {
      if (errnoOf(error) === "ENOENT") return { numbers: [], first: false };
      throw error;
    }
  }

  /** What is not a regular file of ours reads as nothing: a record, but an unreadable one. */
  async #content(name: string): Promise<FileRead | null> {
    const path = join(this.path, name);
    try {
      return await this.#fs.read(path, LARGEST_FILE + 1);
    } catch (error) {
      if (!(error instanceof ConclaveError) || error.code !== "conflict") throw error;
      const mark = await this.#fs.mark(path);
      return mark === null ? null : { data: new Uint8Array(), mark };
    }
  }

  #seen({ number }: Numbered): void {
    if (number > this.#highest) this.#highest = number;
  }
}

/** The second look: throws unless `written` is the newest, and what it was built on is still there. */
function confirm({ numbers, first }: Listing, written: Numbered, before: Numbered | null): void {
  const newest = numbers[0]?.toString() ?? (first ? FIRST : "none");
  const grounded =
    before === null ? numbers.length === 0 : before.name === FIRST ? first : numbers.includes(before.number);
  if (newest === written.name && grounded) return;
  const why = newest === written.name ? "what it was built on is gone" : `the newest is now ${newest}`;
  throw new ConclaveError(
    "unavailable",
    `record ${written.number} was written, but ${why}; read again to learn who wrote last`,
  );
}

function numberOfFirst({ number }: Decoded): bigint {
  if (number !== null) return number;
  throw new ConclaveError(
    "conflict",
    `the file "${FIRST}" is the only record and does not tell its number, so whether someone leads is not known; ` +
      "when nobody does, remove it",
  );
}
