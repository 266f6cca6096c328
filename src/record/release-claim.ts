/** Ending a leadership from another process: at once if its holder is dead, else by waiting out what it may believe. */
import type { CallOptions, Claim, Eviction } from "../seam/backend.js";
import type { RecordStore } from "../seam/table.js";
import { ConclaveError } from "../kit/errors.js";
import type { LeaseRecord } from "./lease.js";
import { EVICTED_HOLDER, tokenOf } from "./lease.js";

/** How often a record that changes between the read and the write is read again: label edits, a last renewal. */
const MOST_ATTEMPTS = 4;

/** Vacates the record if it names this candidate with this token: only for a process that is certainly dead. */
export async function releaseClaim(
  store: RecordStore<LeaseRecord>,
  claim: Claim,
  options: CallOptions,
): Promise<"released" | "not-held"> {
  const vacant = (record: LeaseRecord): LeaseRecord => ({ ...record, holder: null, value: "" });
  return (await replaceHolder(store, claim, vacant, options)) === null ? "not-held" : "released";
}

/**
 * Puts a holder into the record that nobody is. Whoever holds the lease finds
 * itself replaced at its next renewal; all others wait for the ttl of a renewal
 * that would have come now, which ends after the last real one.
 */
export async function evictClaim(
  store: RecordStore<LeaseRecord>,
  claim: Claim,
  options: CallOptions,
): Promise<Eviction | "not-held"> {
  const barred = (record: LeaseRecord): LeaseRecord => ({ ...record, holder: EVICTED_HOLDER, value: "" });
  const written = await replaceHolder(store, claim, barred, options);
  return written === null ? "not-held" : { waitMs: written.ttlMs ?? 0 };
}

/**
 * `null`: the record does not name this candidate with this token. The write is
 * conditional on the version that was read: whatever is written in between,
 * above all a successor's record, refuses it.
 */
async function replaceHolder(
  store: RecordStore<LeaseRecord>,
  claim: Claim,
  next: (record: LeaseRecord) => LeaseRecord,
  options: CallOptions,
): Promise<LeaseRecord | null> {
  for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
    options.signal.throwIfAborted();
    const entry = await store.read(claim.election, options);
    if (entry === null || entry.record.holder !== claim.candidate || tokenOf(entry) !== claim.token)
      return null;
    const record = { ...next(entry.record), token: claim.token };
    if ((await store.write(claim.election, entry.version, record, options)) !== null) return record;
  }
  throw new ConclaveError(
    "unavailable",
    `the record of election "${claim.election}" changed again and again while its leader was replaced; try again`,
  );
}
