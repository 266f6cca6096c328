/**
 * Lease records as JSON text. What others wrote is hostile until checked: size
 * first, then shape, then range; known fields are picked, the rest ignored.
 */
import type { Entry, RecordStore } from "../seam/table.js";
import { invalid } from "../kit/errors.js";
import { heirFrom } from "../kit/heir.js";
import type { LeaseRecord } from "./lease.js";
import { unreadable } from "./lease.js";

const FORMAT = 1;
/** Larger texts are not parsed: a record is a few hundred bytes and a value. What would not be read is not written. */
export const LARGEST_TEXT = 64 * 1024;
/**
 * Bounds on the ttl that a record may claim. The longest is the longest ttl that an election can be given: a record
 * whose holder is gone blocks its election for at most that long, whatever is written in it.
 */
const SHORTEST_TTL_MS = 100;
const LONGEST_TTL_MS = 24 * 60 * 60 * 1000;

/** Format version and ttl come first: a reader of another version needs just these. */
export function encodeLease(record: LeaseRecord): string {
  const text = JSON.stringify({
    v: FORMAT,
    ttlMs: record.ttlMs,
    ...(record.stopMs !== undefined && { stopMs: record.stopMs }),
    holder: record.holder,
    token: record.token?.toString() ?? null,
    since: record.since,
    value: record.value,
    ...(record.heir !== undefined && { heir: record.heir.candidate, heirMs: record.heir.forMs }),
  });
  return checkSize(text);
}

/** A text that every reader will parse. JSON writes some characters as six: a value may fit where its record does not. */
export function checkSize(text: string): string {
  if (text.length <= LARGEST_TEXT) return text;
  throw invalid(
    `the record of this leadership is ${text.length} characters long as JSON; at most ${LARGEST_TEXT} can be read back: ` +
      "publish a shorter value, or one with fewer control characters (each takes six)",
  );
}

/** Reads a lease from its text; what cannot be read counts as held by someone unknown. */
export function decodeLease(text: string): LeaseRecord {
  if (text.length > LARGEST_TEXT) return unreadable();
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return unreadable();
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) return unreadable();
  const { v, ttlMs, stopMs, holder, token, since, value, heir, heirMs } = parsed as Record<string, unknown>;
  const ttl = clampTtl(ttlMs);
  if (v !== FORMAT || ttl === null) return unreadable(ttl);
  if (holder !== null && (typeof holder !== "string" || holder.length === 0)) return unreadable(ttl);
  if (typeof value !== "string" || typeof since !== "number" || !Number.isFinite(since))
    return unreadable(ttl);
  const number = decodeToken(token);
  if (number === undefined) return unreadable(ttl);
  const stop = decodeStop(stopMs, ttl);
  // Only a vacancy is left to somebody.
  const named = holder === null ? heirFrom(heir, heirMs) : undefined;
  return {
    ...{ holder, ttlMs: ttl, ...(stop !== undefined && { stopMs: stop }), value, since, token: number },
    ...(named !== undefined && { heir: named }),
  };
}

export function clampTtl(ttlMs: unknown): number | null {
  if (typeof ttlMs !== "number" || !Number.isFinite(ttlMs) || ttlMs <= 0) return null;
  return Math.min(Math.max(ttlMs, SHORTEST_TTL_MS), LONGEST_TTL_MS);
}

/** What cannot be meant counts as absent: then the whole ttl is waited for. */
function decodeStop(stopMs: unknown, ttlMs: number): number | undefined {
  return typeof stopMs === "number" && stopMs > 0 && stopMs <= ttlMs ? stopMs : undefined;
}

/** Tokens are decimal strings of at most 20 digits: exact beyond 2^53, and never a megabyte of digits. */
function decodeToken(token: unknown): bigint | null | undefined {
  if (token === null) return null;
  return typeof token === "string" && /^[0-9]{1,20}$/.test(token) ? BigInt(token) : undefined;
}

/** Puts the codec over a store of texts. */
export function textLeases(store: RecordStore): RecordStore<LeaseRecord> {
  const decode = (entry: Entry): Entry<LeaseRecord> => ({ ...entry, record: decodeLease(entry.record) });
  const decoded = (entry: Entry | null): Entry<LeaseRecord> | null => (entry === null ? null : decode(entry));
  const { watch, abandoned, list, remove } = store;
  return {
    read: async (key, options) => decoded(await store.read(key, options)),
    write: async (key, expected, record, options) =>
      decoded(await store.write(key, expected, encodeLease(record), options)),
    ...(watch && {
      watch: (key, wake, options) => watch.call(store, key, (entry) => wake(entry && decode(entry)), options),
    }),
    ...(abandoned && { abandoned: (key, version, options) => abandoned.call(store, key, version, options) }),
    ...(remove && { remove: (key, expected, options) => remove.call(store, key, expected, options) }),
    ...(list && { list: (options) => list.call(store, options) }),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}
