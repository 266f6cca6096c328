/**
 * What a record file holds: one line of JSON about the write, then the record
 * as the engine gave it. Files are hostile until checked.
 */
import type { Host } from "./processes.js";
import { parseHost } from "./processes.js";
import { parseNumber } from "./names.js";

const FORMAT = 1;
/** A record is a few hundred bytes and a value. Larger files are not read to their end, and not parsed. */
export const LARGEST_FILE = 64 * 1024;

export interface Envelope {
  readonly number: bigint;
  /** Unique for every write, so that equal numbers of two writes are never taken for one. */
  readonly id: string;
  /** Who must be dead before nobody can act on this record. */
  readonly host?: Host | undefined;
  readonly record: string;
}

export function encodeEnvelope(envelope: Envelope): Uint8Array {
  const { number, id, host, record } = envelope;
  const line = JSON.stringify({ v: FORMAT, number: number.toString(), id, host });
  return Buffer.from(`${line}\n${record}`, "utf8");
}

/** `number` is `null` where even that could not be read. An unreadable record is held by someone unknown, never free. */
export type Decoded = Envelope | (Omit<Envelope, "number"> & { readonly number: bigint | null });

export function decodeEnvelope(bytes: Uint8Array): Decoded {
  const unreadable = { number: null, id: "", record: "" };
  if (bytes.length > LARGEST_FILE) return unreadable;
  const text = Buffer.from(bytes).toString("utf8");
  const end = text.indexOf("\n");
  const header = parseObject(end < 0 ? text : text.slice(0, end));
  if (header === null) return unreadable;
  const record = end < 0 ? "" : text.slice(end + 1);
  const number = decodeNumber(header["number"]);
  const id = header["id"];
  if (header["v"] !== FORMAT || number === null || typeof id !== "string" || id.length > 64) {
    return { number, id: "", record: onlyTtl(record) };
  }
  return { number, id, host: parseHost(header["host"]), record };
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
