/**
 * What a lease record says, and what may be concluded from it. Pure: no store,
 * no clock, no waiting. Everything that decides who may take an office is here.
 */
import type { Leader } from "../seam/backend.js";
import type { Entry } from "../seam/table.js";

/** What a store remembers of a lease. */
export interface LeaseRecord {
  /** The candidate that holds the office; `null` = vacant. Records are vacated, never deleted, so versions live on. */
  readonly holder: string | null;
  /** How long the holder may be silent; `null` = not readable, the challenger's own. */
  readonly ttlMs: number | null;
  readonly value: string;
  /** Begin of the term by the holder's wall clock. Information; never compared with a local clock. */
  readonly since: number;
  /** Fencing token; `null` in the acquiring write itself, whose version is the token. */
  readonly token: bigint | null;
}

/** Stands in for the holder of a record nobody here can read. No candidate can bear this name: theirs end in a random part. */
export const UNKNOWN_HOLDER = "(unreadable)";

/** A record that cannot be read is held by someone unknown, for the ttl it names if it names one. Never free. */
export function unreadable(ttlMs: number | null = null): LeaseRecord {
  return { holder: UNKNOWN_HOLDER, ttlMs, value: "", since: 0, token: null };
}

export function tokenOf(entry: Entry<LeaseRecord>): bigint {
  return entry.record.token ?? entry.version;
}

/**
 * A token is the version of the write that acquired the leadership, so it can
 * never exceed the version of the record that carries it. A record that claims
 * more was not written by this library: it is unreadable. If its token were
 * believed, everyone who read it would refuse all tokens that the store can
 * still grant, and one writer could block the election for good.
 */
export function believed(entry: Entry<LeaseRecord>): Entry<LeaseRecord> {
  const { token, ttlMs } = entry.record;
  return token === null || token <= entry.version ? entry : { ...entry, record: unreadable(ttlMs) };
}

/** The last change of a record this process has seen, and when *it* saw it. */
export interface Observation {
  readonly version: bigint;
  readonly mark: string;
  readonly at: number;
  /** Whether this process saw the record change to this mark. If not it found it so, and the write may be old. */
  readonly changed: boolean;
}

/** Not the version alone: a store that was wiped or restored hands out the same versions again. */
export function markOf({ mark, version, record }: Entry<LeaseRecord>): string {
  return mark ?? `${version}/${record.since}/${record.holder ?? ""}`;
}

/** Whether the store has lost its memory for certain: `known` is the newest version known when it was asked. */
export function wentBack(entry: Entry<LeaseRecord>, known: bigint): boolean {
  return entry.current === true && entry.version < known;
}

/**
 * Updates what was observed. `at` is the monotonic instant *after* the answer
 * arrived: the challenger counts late. A lower version than one already seen is
 * a stale read and changes nothing, unless it is `certain`, or persists: then
 * the store lost its memory, and waiting starts anew.
 */
export function observed(
  previous: Observation | undefined,
  entry: Entry<LeaseRecord>,
  at: number,
  ownTtlMs: number,
  certain = false,
): Observation {
  const mark = markOf(entry);
  if (previous === undefined) return { version: entry.version, mark, at, changed: false };
  const stale = entry.version < previous.version;
  if (stale && !certain && at - previous.at < 2 * (entry.record.ttlMs ?? ownTtlMs)) return previous;
  if (stale || mark !== previous.mark) return { version: entry.version, mark, at, changed: !stale };
  return { ...previous, version: entry.version };
}

export type Verdict =
  /** Nobody holds it: write on this version. */
  | { readonly kind: "open"; readonly expected: bigint | null }
  /** Someone holds it, for at least this long if nothing changes. */
  | { readonly kind: "held"; readonly waitMs: number };

/**
 * May `candidate` take the office recorded in `entry`? A record that names the
 * candidate itself is the trace of an earlier term, or of a write whose answer
 * was lost: it is taken over like any other, by a new write with a higher token.
 */
export function judge(
  entry: Entry<LeaseRecord> | null,
  seen: Observation | undefined,
  candidate: string,
  ownTtlMs: number,
  now: number,
): Verdict {
  if (entry === null) return { kind: "open", expected: null };
  const { holder } = entry.record;
  if (holder === null || holder === candidate) return { kind: "open", expected: entry.version };
  const waitMs = untilSilent(entry, seen, ownTtlMs, now);
  return waitMs <= 0 ? { kind: "open", expected: entry.version } : { kind: "held", waitMs };
}

/**
 * Milliseconds until the silence of the holder is long enough, by the store's
 * clock if it times leases, else by ours. A store's clock is a wall clock and
 * may be set forward; a candidate that saw the last renewal arrive therefore
 * waits for the lease by its own clock too.
 */
export function untilSilent(
  entry: Entry<LeaseRecord>,
  seen: Observation | undefined,
  ownTtlMs: number,
  now: number,
): number {
  const ttlMs = entry.record.ttlMs ?? ownTtlMs;
  const own = seen?.mark === markOf(entry) ? seen.at + ttlMs - now : undefined;
  const left = entry.expiresInMs ?? (entry.ageMs === undefined ? undefined : ttlMs - entry.ageMs);
  if (left !== undefined) return own !== undefined && seen?.changed ? Math.max(left, own) : left;
  // A stale read is not evidence of silence.
  return own ?? ttlMs;
}

/** Who leads by this record, as an observer that saw `seen` may say. */
export function leaderOf(
  entry: Entry<LeaseRecord> | null,
  seen: Observation | undefined,
  ownTtlMs: number,
  now: number,
): Leader | null {
  if (entry === null || entry.record.holder === null) return null;
  if (untilSilent(entry, seen, ownTtlMs, now) <= 0) return null;
  const { holder, value, since } = entry.record;
  return { candidate: holder, token: tokenOf(entry), value, since: since > 0 ? since : undefined };
}
