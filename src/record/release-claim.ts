/** Giving a lease back in the name of another process, by what that process wrote. */
import type { CallOptions, Claim } from "../seam/backend.js";
import type { RecordStore } from "../seam/table.js";
import { ConclaveError } from "../kit/errors.js";
import type { LeaseRecord } from "./lease.js";
import { tokenOf } from "./lease.js";

/** How often a record that changes between the read and the write is read again: label edits, a last renewal. */
const MOST_ATTEMPTS = 4;

/**
 * Vacates the record if it names this candidate with this token. The write is
 * conditional on the version that was read: whatever is written in between,
 * above all a successor's record, refuses it.
 */
export async function releaseClaim(
  store: RecordStore<LeaseRecord>,
  claim: Claim,
  options: CallOptions,
): Promise<"released" | "not-held"> {
  for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
    options.signal.throwIfAborted();
    const entry = await store.read(claim.election, options);
    if (entry === null || entry.record.holder !== claim.candidate || tokenOf(entry) !== claim.token)
      return "not-held";
    const vacant = { ...entry.record, holder: null, value: "", token: claim.token };
    if ((await store.write(claim.election, entry.version, vacant, options)) !== null) return "released";
  }
  throw new ConclaveError(
    "unavailable",
    `the record of election "${claim.election}" changed again and again while it was released; try again`,
  );
}
