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
import { dirname, join } from "node:path";
import { ConclaveError } from "../../kit/errors.js";
import { decodeEnvelope, LARGEST_FILE } from "./envelope.js";
import type { FileSystem } from "./fs.js";
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
  readonly bytes: Uint8Array;
}

export class Records {
  readonly path: string;
  readonly #fs: FileSystem;
  #highest = 0n;
  /** Highest number known to be on the disk. */
  #durable = 0n;

  constructor(fs: FileSystem, path: string) {
    this.#fs = fs;
    this.path = path;
  }

  /** Highest number seen: a fresh start goes above it, whatever the wall clock says. */
  get highest(): bigint {
    return this.#highest;
  }

  /** The newest record. */
  async newest(): Promise<Found | null> {
    for (let look = 0; look < MOST_LOOKS; look++) {
      const { numbers, first } = await this.#list();
      const [number] = numbers;
      if (number === undefined && !first) return null;
      const name = number?.toString() ?? FIRST;
      const bytes = await this.#content(name);
      if (bytes !== null) {
        const found = { name, number: number ?? numberOfFirst(bytes), bytes };
        this.#seen(found);
        return found;
      }
      // Pruned between the listing and the look: by then there are sixteen newer ones.
    }
    throw new ConclaveError("unavailable", "records came and went faster than they could be read; try again");
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

  /** After the link: make the number durable if a token may depend on it, look again, and tidy up. */
  async settle(written: Numbered, before: Numbered | null, durable: boolean): Promise<void> {
    if (durable) await this.#sync(written.number);
    const after = await this.#list();
    confirm(after, written, before);
    this.#seen(written);
    await this.#prune(after);
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

  /** From the oldest up, one after the other: the second look counts on it. */
  async #prune({ numbers, first }: Listing): Promise<void> {
    const kept = numbers.slice(0, KEPT_NUMBERS);
    const old = numbers.slice(KEPT_NUMBERS).toReversed();
    const [newest, oldestKept] = [kept[0], kept.at(-1)];
    if (newest === undefined || oldestKept === undefined) return;
    if (old.length === 0 && !(first && kept.length === KEPT_NUMBERS)) return;
    try {
      if (this.#durable < oldestKept) await this.#sync(newest);
      if (first) await this.#fs.remove(join(this.path, FIRST));
      for (const number of old) await this.#fs.remove(join(this.path, number.toString()));
    } catch {
      // The write has succeeded; what could not be removed is left for the next writer.
    }
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
  async #content(name: string): Promise<Uint8Array | null> {
    try {
      return await this.#fs.read(join(this.path, name), LARGEST_FILE + 1);
    } catch (error) {
      if (error instanceof ConclaveError && error.code === "conflict") return new Uint8Array();
      throw error;
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

function numberOfFirst(bytes: Uint8Array): bigint {
  const { number } = decodeEnvelope(bytes);
  if (number !== null) return number;
  throw new ConclaveError(
    "conflict",
    `the file "${FIRST}" is the only record and does not tell its number, so whether someone leads is not known; ` +
      "when nobody does, remove it",
  );
}
