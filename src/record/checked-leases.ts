/** The lease store as the engine reads it: records that no candidate can have written are unreadable. */
import type { RecordStore } from "../seam/table.js";
import type { LeaseRecord } from "./lease.js";
import { checkedEntry } from "./lease.js";

export function checkedLeases(store: RecordStore<LeaseRecord>): RecordStore<LeaseRecord> {
  const { watch, abandoned, list, remove } = store;
  return {
    read: async (key, options) => {
      const entry = await store.read(key, options);
      return entry === null ? null : checkedEntry(entry);
    },
    write: (key, expected, record, options) => store.write(key, expected, record, options),
    ...(watch && {
      watch: (key, wake, options) =>
        watch.call(store, key, (entry) => wake(entry && checkedEntry(entry)), options),
    }),
    ...(abandoned && { abandoned: (key, version, options) => abandoned.call(store, key, version, options) }),
    ...(remove && { remove: (key, expected, options) => remove.call(store, key, expected, options) }),
    ...(list && { list: (options) => list.call(store, options) }),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}
