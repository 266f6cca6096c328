/** Removing the record of an election that nobody uses any more. */
import type { CallOptions, Forgotten } from "../seam/backend.js";
import type { Clock } from "../seam/clock.js";
import type { RecordStore } from "../seam/table.js";
import type { LeaseReader } from "./lease-reader.js";
import type { LeaseRecord } from "./lease.js";
import { decideTakeover } from "./lease.js";

export interface ForgetParts {
  readonly store: RecordStore<LeaseRecord>;
  /** What this process has seen of the record: since when it has been silent. */
  readonly reads: LeaseReader;
  readonly clock: Clock;
}

const READ_MS = 5_000;
/** How long a record whose holder names no ttl is waited for. */
const UNKNOWN_TTL_MS = 60_000;

/**
 * Only a record that any candidate could take over at this moment is removed,
 * and only in the version that was judged.
 */
export async function forgetLease(
  { store, reads, clock }: ForgetParts,
  election: string,
  options: CallOptions,
): Promise<Forgotten> {
  const entry = await reads.read(election, READ_MS, options.signal);
  if (entry === null) return "removed";
  // No candidate has an empty id.
  const takeover = decideTakeover(entry, reads.lastChange(election), "", UNKNOWN_TTL_MS, clock.now());
  if (takeover.kind === "held") return "in-use";
  if (store.remove === undefined) return "kept";
  return (await store.remove(election, entry.version, options)) ? "removed" : "in-use";
}
