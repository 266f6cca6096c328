/**
 * A directory of numbered, never changed files (see files/numbered-links.ts): to
 * check who wrote last and to write is one step.
 *
 * Old numbers are removed, lowest first, and a writer that was stopped for long
 * can then create a removed number again. A second look after the link finds
 * that out; nobody reads numbers that low.
 */
import { mkdir, readdir, readFile, rm, stat, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Clock } from "../seam/clock.js";
import { ConclaveError, describe } from "../kit/errors.js";
import { createFile, errnoOf, KEPT_NUMBERS, linkFile, syncDirectory } from "../files/numbered-links.js";
import { parseToken } from "../kit/token.js";

/** What stands at the head of each segment. */
export interface Header {
  readonly token: bigint;
  /** Unique for each segment. */
  readonly id: string;
  /** Id of the segment it was built on; `null` for the first. */
  readonly parent: string | null;
  /** Number of the segment with which the present content begins. */
  readonly base: number;
}

export interface Segment extends Header {
  readonly number: number;
  readonly data: Buffer;
}

const NAME = /^[0-9]{16}$/;
const LARGEST_HEADER = 1024;
const STALE_TEMP_MS = 60 * 60 * 1000;

export class Segments {
  readonly #directory: string;
  readonly #staging: string;
  readonly #clock: Clock;
  #ready: Promise<void> | undefined;
  /** We made the directory, and its name is not known to be on the disk yet. */
  #created = false;

  constructor(directory: string, clock: Clock) {
    this.#directory = directory;
    this.#staging = join(directory, "staging");
    this.#clock = clock;
  }

  /** The newest segment; `null` = there is none. */
  async newest(): Promise<Segment | null> {
    for (;;) {
      const number = (await this.#list()).at(-1);
      if (number === undefined) return null;
      const segment = await this.read(number);
      if (segment !== null) return segment;
    }
  }

  /** One segment; `null` = it is not there (any more). */
  async read(number: number): Promise<Segment | null> {
    const bytes = await readFile(this.#path(number)).catch(absent);
    return bytes === null ? null : { number, ...decode(bytes, number, this.#path(number)) };
  }

  /** Takes the number after `newest`. `false` = someone else was faster; nothing was written. */
  async add(
    newest: Segment | null,
    header: Omit<Header, "id" | "parent">,
    data: Uint8Array,
  ): Promise<boolean> {
    await (this.#ready ??= this.#prepare().catch((error: unknown) => {
      this.#ready = undefined; // perhaps next time
      throw error;
    }));
    const number = (newest?.number ?? 0) + 1;
    const id = this.#clock.uniqueId();
    const staged = join(this.#staging, `${process.pid}-${id}`);
    try {
      await createFile(staged, encode({ ...header, id, parent: newest?.id ?? null }, data), true);
      if (!(await linkFile(staged, this.#path(number)))) return false;
    } finally {
      await unlink(staged).catch(() => {});
    }
    const valid = await this.#confirm(number, id);
    if (valid) await this.#settle(number, header.base);
    return valid;
  }

  /** Whether the number we created was the next one, and not one that had been used and removed. */
  async #confirm(number: number, id: string): Promise<boolean> {
    for (;;) {
      const numbers = await this.#list();
      const newest = numbers.at(-1) ?? 0;
      if (newest === number) return true;
      if (numbers.includes(number + 1)) {
        const next = await this.read(number + 1);
        if (next === null) continue;
        if (next.parent === id) return true;
      } else if (newest < number || !numbers.includes(number)) {
        throw new ConclaveError(
          "unavailable",
          `${this.#path(number)} was removed before it could be confirmed; whether it counted is unknown`,
        );
      }
      // Lowest go first: if ours is there and the next is not, ours came after the removal of both.
      await unlink(this.#path(number)).catch(() => {});
      return false;
    }
  }

  async #settle(number: number, base: number): Promise<void> {
    await syncNames(this.#directory);
    const first = Math.min(base, number - KEPT_NUMBERS + 1);
    for (const old of await this.#list()) {
      if (old >= first) break;
      await unlink(this.#path(old)).catch(() => {});
    }
  }

  async #prepare(): Promise<void> {
    // Not its parents: a volume that is not mounted would look like a resource that has seen no leader yet.
    if (await makeDirectory(this.#directory)) this.#created = true;
    if (this.#created) await syncNames(dirname(this.#directory));
    this.#created = false;
    await makeDirectory(this.#staging);
    for (const name of await readdir(this.#staging)) {
      const path = join(this.#staging, name);
      const info = await stat(path).catch(absent);
      if (info !== null && this.#clock.wall() - info.mtimeMs > STALE_TEMP_MS) await rm(path, { force: true });
    }
  }

  /** Numbers in rising order. */
  async #list(): Promise<number[]> {
    const names = (await readdir(this.#directory).catch(absent)) ?? [];
    return names
      .filter((name) => NAME.test(name))
      .map(Number)
      .sort((a, b) => a - b);
  }

  #path(number: number): string {
    return join(this.#directory, String(number).padStart(16, "0"));
  }
}

function encode(header: Header, data: Uint8Array): Buffer {
  const { token, id, parent, base } = header;
  const line = JSON.stringify({ v: 1, token: token.toString(), id, parent, base });
  return Buffer.concat([Buffer.from(`${line}\n`), data]);
}

function decode(bytes: Buffer, place: number, path: string): Header & { data: Buffer } {
  const foreign = (): ConclaveError =>
    new ConclaveError(
      "conflict",
      `${path} is not a fenced segment; nothing was written. Remove it, or use another directory`,
    );
  const end = bytes.subarray(0, LARGEST_HEADER).indexOf(0x0a);
  if (end < 0) throw foreign();
  let parsed: unknown;
  try {
    parsed = JSON.parse(bytes.toString("utf8", 0, end));
  } catch {
    throw foreign();
  }
  if (typeof parsed !== "object" || parsed === null) throw foreign();
  const { v, token, id, parent, base } = parsed as Record<string, unknown>;
  const number = parseToken(token);
  if (v !== 1 || number === undefined || typeof id !== "string") throw foreign();
  if (parent !== null && typeof parent !== "string") throw foreign();
  if (typeof base !== "number" || !Number.isSafeInteger(base) || base < 1 || base > place) throw foreign();
  return { token: number, id, parent, base, data: bytes.subarray(end + 1) };
}

/** Whether it was missing. */
async function makeDirectory(path: string): Promise<boolean> {
  try {
    await mkdir(path, { mode: 0o700 });
    return true;
  } catch (error) {
    if (errnoOf(error) === "EEXIST") return false;
    throw error;
  }
}

/** Any failure means that the new name may not last. */
async function syncNames(path: string): Promise<void> {
  try {
    await syncDirectory(path);
  } catch (error) {
    throw new ConclaveError(
      "unavailable",
      `${path} could not be synced (${describe(error)}): what was written may be read now and be gone after a ` +
        "crash of the machine; read it back before writing it again",
      { cause: error },
    );
  }
}

function absent(error: unknown): null {
  if (errnoOf(error) === "ENOENT") return null;
  throw error;
}
