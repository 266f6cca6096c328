/** A table of versioned records: what a store with compare-and-swap offers. `recordBackend` turns it into a backend. */
import type { CallOptions, Listing } from "./backend.js";

/** One version of a stored record. */
export interface Entry<R = string> {
  /**
   * Number of this version: strictly rising for a key, never reused, not even
   * after the record was vacated or the process restarted. Fencing tokens are
   * made of it.
   */
  readonly version: bigint;
  readonly record: R;
  /**
   * What tells a renewal from any other write, where they differ (someone edits
   * a label of a Kubernetes Lease): records with equal ids count as unchanged.
   * Without it every new version is a renewal.
   */
  readonly renewalId?: string | undefined;
  /**
   * `true`: this was the newest version when the store answered, not that of a
   * cache or of a replica that may lag. A lower version than one known before the
   * question then proves that the store has lost its memory (wiped, restored,
   * replaced by an older copy): the leader learns of it at its next renewal, and
   * observers follow. Without it such an answer counts as stale.
   */
  readonly current?: boolean | undefined;
  /**
   * Only for stores that time leases themselves: milliseconds the record is
   * still valid by the *store's* clock, zero or less when it has expired.
   */
  readonly expiresInMs?: number | undefined;
  /**
   * For stores that time leases without knowing how long they last: milliseconds
   * since this version was written, by the *store's* clock. What is left of the
   * lease follows from the ttl in the record. `expiresInMs` counts first.
   */
  readonly ageMs?: number | undefined;
}

/**
 * Three methods that turn a store into a {@link Backend} (through
 * `recordBackend`). Keys are election names, already checked but not encoded.
 */
export interface RecordStore<R = string> extends AsyncDisposable {
  /** The newest record. May be stale: it decides nothing by itself. */
  read(key: string, options: CallOptions): Promise<Entry<R> | null>;
  /**
   * Writes if the current version is `expected` (`null`: if there is none).
   * `null` = not current, certainly not written. Throws = unknown.
   */
  write(key: string, expected: bigint | null, record: R, options: CallOptions): Promise<Entry<R> | null>;
  /**
   * Calls `wake` once when the watch is armed and then whenever the record may
   * have changed, until the signal aborts. A hint: it may miss, repeat or end
   * early. A push that brings the new version hands it to `wake`: if it says that
   * nobody leads, a waiting candidate writes on that version without reading
   * first. Nothing else is concluded from it, so it may be late or even forged.
   */
  watch?(key: string, wake: (entry?: Entry<R>) => void, options: CallOptions): Promise<void>;
  /**
   * `true` only if the holder of this version is certainly gone forever, so
   * that nobody need wait for its lease to run out. Anything else is `false`.
   * Asked several times a second while waiting: it must be cheap.
   */
  abandoned?(key: string, version: bigint, options: CallOptions): Promise<boolean>;
  /**
   * Removes the record if its current version is `expected`; `false`: it is not,
   * and nothing was removed. Versions rise over a removal, too: whoever writes the
   * record anew gets a higher one. A store that cannot see to that has no `remove`.
   */
  remove?(key: string, expected: bigint, options: CallOptions): Promise<boolean>;
  /** The keys there are records of, at most ten thousand. Absent where the store cannot tell. */
  list?(options: CallOptions): Promise<Listing>;
}
