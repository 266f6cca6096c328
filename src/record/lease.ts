/**
 * What a lease record says, and what may be concluded from it. Pure: no store,
 * no clock, no waiting. Every decision about who may take over is here.
 */
import { isHeir, LONGEST_HEIR_MS } from "../kit/heir.js";
import type { Candidacy, Heir, Leader } from "../seam/backend.js";
import type { Entry } from "../seam/table.js";

/** What a store remembers of a lease. */
export interface LeaseRecord {
  /** The candidate that leads; `null` = nobody. Records are cleared, never deleted, so that versions go on rising. */
  readonly holder: string | null;
  /** How long the lease lasts without a renewal; `null` = not readable: the challenger's own ttl applies. */
  readonly ttlMs: number | null;
  /** How long after its last renewal the holder stops acting by itself; absent = `ttlMs`. */
  readonly stopMs?: number | undefined;
  readonly value: string;
  /** When the term began, by the holder's wall clock. Information; never compared with a local clock. */
  readonly since: number;
  /** Fencing token; `null` in the acquiring write itself, whose version is the token. */
  readonly token: bigint | null;
  /** Of a vacant record: to whom the last leader leaves it. A wish: whoever does not know of it takes the lease. */
  readonly heir?: Heir | undefined;
}

/** The holder of a record that cannot be read. No candidate can have this id: theirs end in a random part. */
export const UNKNOWN_HOLDER = "(unreadable)";

/**
 * The holder after an eviction. Nobody leads, but the leader before may still
 * believe that it does: the lease is waited out like any other. Not even a dead
 * writer shortens that, since it was written by whoever evicted.
 */
export const EVICTED_HOLDER = "(evicted)";

/** A record that cannot be read is held by someone unknown, for the ttl it names if it names one. Never free. */
export function unreadable(ttlMs: number | null = null): LeaseRecord {
  return { holder: UNKNOWN_HOLDER, ttlMs, value: "", since: 0, token: null };
}

/** What a candidate writes to lead. The version of this write becomes its token. */
export function acquiring(
  { candidate, ttlMs, stopMs, value }: Candidacy,
  since: number,
): LeaseRecord & { readonly holder: string; readonly ttlMs: number } {
  return { holder: candidate, ttlMs, ...(stopMs !== undefined && { stopMs }), value, since, token: null };
}

/** Whether a version says that nobody leads, and names no heir but `candidate`. */
export function isFree(
  entry: Entry<LeaseRecord> | undefined,
  candidate: string,
): entry is Entry<LeaseRecord> {
  return entry?.record.holder === null && (entry.record.heir === undefined || isLeftTo(entry, candidate));
}

/** Whether the record leaves a vacancy to this candidate by name. */
export function isLeftTo({ record }: Entry<LeaseRecord>, candidate: string): boolean {
  return record.holder === null && record.heir !== undefined && isHeir(candidate, record.heir.candidate);
}

export function tokenOf(entry: Entry<LeaseRecord>): bigint {
  return entry.record.token ?? entry.version;
}

/**
 * A token is the version of the write that acquired the leadership, so it can
 * never exceed the version of the record that carries it. A record that claims
 * more was not written by this library: it is unreadable. If its token were
 * accepted, everyone who read it would refuse all tokens that the store can
 * still grant, and one writer could block the election for good.
 */
export function checkedEntry(entry: Entry<LeaseRecord>): Entry<LeaseRecord> {
  const { token, ttlMs } = entry.record;
  return token === null || token <= entry.version ? entry : { ...entry, record: unreadable(ttlMs) };
}

/** The last change of a record this process has seen, and when *it* saw it. */
export interface LastChange {
  readonly version: bigint;
  readonly renewalId: string;
  readonly at: number;
  /** Whether this process saw the record change to this renewalId. If not it found it so, and the write may be old. */
  readonly changed: boolean;
}

/** Not the version alone: a store that was wiped or restored hands out the same versions again. */
export function renewalIdOf({ renewalId, version, record }: Entry<LeaseRecord>): string {
  return renewalId ?? `${version}/${record.since}/${record.holder ?? ""}`;
}

/** Whether the store has lost its memory for certain: `known` is the newest version known when it was asked. */
export function wentBack(entry: Entry<LeaseRecord>, known: bigint): boolean {
  return entry.current === true && entry.version < known;
}

/**
 * Updates what was observed. `at` is the monotonic time *after* the answer
 * arrived: the challenger counts late. A lower version than one already seen is
 * a stale read and changes nothing, unless it is `certain`, or persists: then
 * the store lost its memory, and waiting starts anew.
 */
export function observed(
  previous: LastChange | undefined,
  entry: Entry<LeaseRecord>,
  at: number,
  ownTtlMs: number,
  certain = false,
): LastChange {
  const renewalId = renewalIdOf(entry);
  if (previous === undefined) return { version: entry.version, renewalId, at, changed: false };
  const stale = entry.version < previous.version;
  if (stale && !certain && at - previous.at < 2 * (entry.record.ttlMs ?? ownTtlMs)) return previous;
  if (stale || renewalId !== previous.renewalId)
    return { version: entry.version, renewalId, at, changed: !stale };
  return { ...previous, version: entry.version };
}

export type Takeover =
  /** Nobody holds it: write on this version. */
  | { readonly kind: "open"; readonly expected: bigint | null }
  /** Someone holds it, for at least this long if nothing changes. */
  | { readonly kind: "held"; readonly waitMs: number };

/**
 * May `candidate` take over the lease recorded in `entry`? A record that names the
 * candidate itself is the trace of an earlier term, or of a write whose answer
 * was lost: it is taken over like any other, by a new write with a higher token.
 */
export function decideTakeover(
  entry: Entry<LeaseRecord> | null,
  seen: LastChange | undefined,
  candidate: string,
  ownTtlMs: number,
  now: number,
): Takeover {
  if (entry === null) return { kind: "open", expected: null };
  const { holder } = entry.record;
  if (holder === candidate) return { kind: "open", expected: entry.version };
  const waitMs =
    holder === null ? untilUnclaimed(entry, seen, candidate, now) : untilSilent(entry, seen, ownTtlMs, now);
  return waitMs <= 0 ? { kind: "open", expected: entry.version } : { kind: "held", waitMs };
}

/**
 * How much longer a vacancy is left to the heir that the last leader named: for
 * the time it asked for, counted by our own clock from when we saw the vacancy,
 * and never longer than a bound. An heir that is dead blocks nobody for good.
 */
function untilUnclaimed(
  entry: Entry<LeaseRecord>,
  seen: LastChange | undefined,
  candidate: string,
  now: number,
): number {
  const { heir } = entry.record;
  if (heir === undefined || isLeftTo(entry, candidate)) return 0;
  const forMs = Math.min(heir.forMs, LONGEST_HEIR_MS);
  // Another version than the one that was seen last is a stale read: a write on it would be refused.
  return seen?.renewalId === renewalIdOf(entry) ? seen.at + forMs - now : forMs;
}

/**
 * Milliseconds until the silence of the holder is long enough, by the store's
 * clock if it times leases, else by ours.
 *
 * A store's clock is a wall clock, and may be set. Set forward, it ends leases
 * early: a candidate that saw the last renewal arrive also waits, by its own
 * clock, until the holder has stopped. (One that came later has only the store's
 * word.) Set back, it would keep a dead leader for as long: a candidate that has
 * seen no change for a whole ttl by its own clock need not wait for the store's.
 */
export function untilSilent(
  entry: Entry<LeaseRecord>,
  seen: LastChange | undefined,
  ownTtlMs: number,
  now: number,
): number {
  const ttlMs = entry.record.ttlMs ?? ownTtlMs;
  const left = entry.expiresInMs ?? (entry.ageMs === undefined ? undefined : ttlMs - entry.ageMs);
  // Another version than the one that was seen last is a stale read, and no evidence of silence.
  if (seen?.renewalId !== renewalIdOf(entry)) return left ?? ttlMs;
  const own = seen.at + ttlMs - now;
  if (left === undefined) return own;
  const stopped = seen.changed ? seen.at + stoppedAfterMs(entry.record, ttlMs) - now : -Infinity;
  return Math.min(own, Math.max(left, stopped));
}

/** The rates of two clocks may differ by what the margin of 15 % permits. */
const SLOWEST_CLOCK = 0.85;
/** A holder may overlook a suspend of its machine of up to this share of its margin. */
const OVERLOOKED = 0.25;

/** How long after a renewal was seen its holder has stopped for certain, though its clock runs slower than ours. */
function stoppedAfterMs({ stopMs }: LeaseRecord, ttlMs: number): number {
  if (stopMs === undefined) return ttlMs;
  return Math.min(ttlMs, stopMs / SLOWEST_CLOCK + (ttlMs - stopMs) * OVERLOOKED);
}

/** The leader by this record, for an observer that saw `seen`. */
export function leaderFromRecord(
  entry: Entry<LeaseRecord> | null,
  seen: LastChange | undefined,
  ownTtlMs: number,
  now: number,
): Leader | null {
  if (entry === null || entry.record.holder === null || entry.record.holder === EVICTED_HOLDER) return null;
  if (untilSilent(entry, seen, ownTtlMs, now) <= 0) return null;
  const { holder, value, since } = entry.record;
  return { candidate: holder, token: tokenOf(entry), value, since: since > 0 ? since : undefined };
}
