/** For tests that touch records among other things: a backend that keeps none is not asked for them. */
import type { Backend } from "../../seam/backend.js";
import type { RecordStore } from "../../seam/table.js";

/** The backend's records, or a stand-in that keeps nothing and ends with its signal. */
export function recordsOrNone(backend: Backend): RecordStore {
  return backend.records ?? NONE;
}

const NONE: RecordStore = {
  read: async (_key, { signal }) => {
    signal.throwIfAborted();
    return null;
  },
  write: async (_key, _expected, _record, { signal }) => {
    signal.throwIfAborted();
    return null;
  },
  [Symbol.asyncDispose]: async () => {},
};
