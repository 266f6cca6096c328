/** Records of a backend that may have none. */
import type { RecordStore } from "../seam/table.js";
import { ConclaveError } from "./errors.js";

/** A backend's records. Throws `unsupported` where it keeps none. */
export function recordsOf(records: RecordStore | undefined, what: string): RecordStore {
  if (records !== undefined) return records;
  throw new ConclaveError(
    "unsupported",
    `${what} needs a store that keeps records, and this backend keeps none: use another backend for it`,
  );
}
