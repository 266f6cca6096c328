/**
 * Names on the disk: one directory per key, one number per record. Pure.
 */
import { createHash } from "node:crypto";
import { ConclaveError, invalid } from "../../kit/errors.js";

/** Longer encodings are hashed: file systems take 255 bytes, and paths have limits too. */
const LONGEST_ENCODED = 180;

/**
 * The directory of a key. Two keys never share one, not even on a file system
 * that ignores case or folds Unicode: everything but lower-case ASCII letters,
 * digits and `-_.` is written as `%xx` of its UTF-8 bytes. The prefix keeps `.`,
 * `..` and the device names of Windows out, and the readable from the hashed.
 */
export function encodeKey(key: string): string {
  if (key.length === 0) throw invalid("a name must have at least one character");
  // UTF-8 has no lone surrogates: different broken strings would become one name.
  if (/\p{Surrogate}/u.test(key))
    throw invalid("a name must be well-formed Unicode; this one holds half a surrogate pair");
  const bytes = Buffer.from(key, "utf8");
  let encoded = "";
  for (const byte of bytes) {
    const char = String.fromCharCode(byte);
    encoded += /[a-z0-9_.-]/.test(char) ? char : `%${byte.toString(16).padStart(2, "0")}`;
  }
  if (encoded.endsWith(".")) encoded = `${encoded.slice(0, -1)}%2e`; // Windows drops a dot at the end
  if (encoded.length <= LONGEST_ENCODED) return `n-${encoded}`;
  return `h-${createHash("sha256").update(bytes).digest("hex")}`;
}

/** The key of a directory; `undefined` if it is stored as a hash, or no key could have made it. */
export function decodeKey(folder: string): string | undefined {
  try {
    const key = decodeURIComponent(folder.slice(2));
    return encodeKey(key) === folder ? key : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The first record of an empty directory bears this fixed name and its number
 * inside: candidates that find the directory empty draw different numbers from
 * their clocks, and only one fixed name lets `link` decide between them.
 */
export const FIRST = "first";

/**
 * Records are numbered from the epoch in microseconds. In milliseconds, numbers
 * would outrun the clock where a lock changes hands a thousand times a second,
 * and a directory that is wiped then would begin below them.
 */
const NUMBERS_PER_MS = 1_000;

/**
 * No real number comes near this (year 2248). A larger one was put there by hand
 * or by a clock gone mad; to follow it would teach every fence a token that no
 * later one can reach.
 */
const LARGEST_NUMBER = 2n ** 43n * BigInt(NUMBERS_PER_MS);

/** The number in a file name; `null` if it is not a record. Only canonical decimals are. */
export function parseNumber(name: string): bigint | null {
  if (!/^[1-9][0-9]*$/.test(name)) return null;
  const number = name.length <= 19 ? BigInt(name) : LARGEST_NUMBER + 1n;
  if (number <= LARGEST_NUMBER) return number;
  throw new ConclaveError(
    "conflict",
    `a record is numbered ${name.slice(0, 24)}${name.length > 24 ? "…" : ""}, further than any clock could have brought it: ` +
      "it was not put there by conclave; remove that file",
  );
}

/** The number of a first record, by this wall clock, above everything this process has seen. */
export function freshNumber(wallMs: number, highestSeen: bigint): bigint {
  const wall = Number.isFinite(wallMs) && wallMs >= 1 ? BigInt(Math.floor(wallMs * NUMBERS_PER_MS)) : 1n;
  const number = wall > highestSeen ? wall : highestSeen + 1n;
  if (number <= LARGEST_NUMBER) return number;
  throw new ConclaveError(
    "unsupported",
    `the wall clock is at ${wallMs} ms since 1970: set it right, tokens are numbered by it`,
  );
}

/** What a directory listing says. Names that are not records are none of our business. */
export interface Listing {
  /** Newest first. */
  readonly numbers: readonly bigint[];
  readonly first: boolean;
}

export function parseListing(names: readonly string[]): Listing {
  const numbers: bigint[] = [];
  for (const name of names) {
    const number = parseNumber(name);
    if (number !== null) numbers.push(number);
  }
  numbers.sort((a, b) => (a < b ? 1 : a > b ? -1 : 0));
  return { numbers, first: names.includes(FIRST) };
}

/** Temp files carry their birth, so that leftovers of killed writers can be recognised by name. */
export function stagingName(wallMs: number, unique: string): string {
  return `${Math.max(0, Math.floor(wallMs))}-${unique}`;
}

/** Whether a temp file is a leftover, older than `ageMs` by this wall clock (or from its future, after a jump back). */
export function isLeftover(name: string, wallMs: number, ageMs: number): boolean {
  const match = /^([0-9]{1,15})-[0-9a-z]+$/.exec(name);
  return match !== null && Math.abs(wallMs - Number(match[1])) > ageMs;
}
