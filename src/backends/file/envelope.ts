/**
 * What a record file holds: one line of JSON about the write, then the record
 * as the engine gave it, then a checksum. Files are hostile until checked.
 *
 * A file is written over when its record has long been succeeded, so whoever
 * reads an old record may find half of another, or a whole one of another name:
 * the checksum, which counts in where the record belongs, tells.
 */
import { crc32 } from "node:zlib";
import type { Host } from "./processes.js";
import { parseHost } from "./processes.js";
import { parseNumber } from "./names.js";

const FORMAT = 1;
/** A record is a few hundred bytes and a value. Larger files are not read to their end, and not parsed. */
export const LARGEST_FILE = 64 * 1024;
/** Files are filled up to a multiple of this, so that one record fits where another was. */
const STEP = 1024;
/** Characters of the checksum. */
const SUM = 8;

export interface Envelope {
  readonly number: bigint;
  /** Unique for every write, so that equal numbers of two writes are never taken for one. */
  readonly id: string;
  /** Who must be dead before nobody can act on this record. */
  readonly host?: Host | undefined;
  readonly record: string;
}

/** `place`: which directory of records this is written for. */
export function encodeEnvelope(envelope: Envelope, place: string): Uint8Array {
  const { number, id, host, record } = envelope;
  const size = Buffer.byteLength(record);
  const line = JSON.stringify({ v: FORMAT, number: number.toString(), id, size, host });
  const text = Buffer.from(`${line}\n${record}`, "utf8");
  const length = text.length + SUM + 2;
  const bytes = Buffer.alloc(Math.ceil(length / STEP) * STEP, "\n");
  text.copy(bytes);
  bytes.write(checksum(text, place), text.length + 1, "latin1");
  return bytes;
}

/** `number` is `null` where even that could not be read. An unreadable record is held by someone unknown, never free. */
export type Decoded = Envelope | (Omit<Envelope, "number"> & { readonly number: bigint | null });

export function decodeEnvelope(data: Uint8Array, place: string): Decoded {
  const unreadable = { number: null, id: "", record: "" };
  if (data.length > LARGEST_FILE) return unreadable;
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.length);
  const newline = bytes.indexOf("\n");
  const end = newline < 0 ? bytes.length : newline;
  const header = parseObject(bytes.toString("utf8", 0, end));
  if (header === null) return unreadable;
  const number = decodeNumber(header["number"]);
  const id = header["id"];
  const size = header["size"];
  if (header["v"] !== FORMAT || number === null || typeof id !== "string" || id.length > 64) {
    return { number, id: "", record: onlyTtl(bytes.toString("utf8", end + 1).trimEnd()) };
  }
  // Without a checksum, as older versions wrote it, or torn so that it looks like that. A leader of such a version has its ttl all the same.
  if (size === undefined)
    return { ...unreadable, record: onlyTtl(bytes.toString("utf8", end + 1).trimEnd()) };
  if (typeof size !== "number" || !Number.isInteger(size) || size < 0) return unreadable;
  const last = end + 1 + size;
  if (bytes.toString("latin1", last + 1, last + 1 + SUM) !== checksum(bytes.subarray(0, last), place))
    return unreadable;
  return { number, id, host: parseHost(header["host"]), record: bytes.toString("utf8", end + 1, last) };
}

function checksum(bytes: Uint8Array, place: string): string {
  return crc32(bytes, crc32(place)).toString(16).padStart(SUM, "0");
}

function decodeNumber(value: unknown): bigint | null {
  if (typeof value !== "string") return null;
  try {
    return parseNumber(value);
  } catch {
    return null;
  }
}

/** Of a record in a format we do not know only the ttl is believed: the codec finds it unreadable, for that long. */
function onlyTtl(record: string): string {
  const ttlMs = parseObject(record)?.["ttlMs"];
  return typeof ttlMs === "number" ? JSON.stringify({ v: "unknown", ttlMs }) : "";
}

function parseObject(text: string): Record<string, unknown> | null {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === "object" && parsed !== null && !Array.isArray(parsed) ? { ...parsed } : null;
  } catch {
    return null;
  }
}
