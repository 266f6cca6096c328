/** Rules about stores that lose their memory, and about records that no candidate wrote. */
import type { Mutant } from "./mutants.js";

const RECORD = "src/record/backend.js";
const HOLD = "src/record/hold.js";
const LEASE = "src/record/lease.js";
const FILE_STORE = "src/backends/file/store.js";
const KUBERNETES_LEASE = "src/backends/kubernetes/lease.js";

export const MEMORY_MUTANTS: readonly Mutant[] = [
  {
    name: "a token above the version of its record is believed",
    rule: "a token is the version of an acquiring write and can never exceed that of its record",
    stores: ["observer", "timed", "file"],
    edits: [
      {
        file: LEASE,
        find: "return token === null || token <= entry.version ? entry",
        replace: "return true ? entry",
      },
    ],
  },
  {
    name: "Kubernetes: an annotation with a token above the Lease's version is believed",
    rule: "a token can never exceed the version of its record",
    stores: ["observer"],
    // The engine would find the record unreadable all the same: only without both does it go wrong.
    edits: [
      { file: KUBERNETES_LEASE, find: "number > lease.version", replace: "false" },
      {
        file: LEASE,
        find: "return token === null || token <= entry.version ? entry",
        replace: "return token === null || entry.renewalId !== undefined || token <= entry.version ? entry",
      },
    ],
  },
  {
    name: "what a campaign reads does not count as seen",
    rule: "a token below one that a campaign has met is refused",
    stores: ["observer", "timed", "file"],
    edits: [{ file: RECORD, find: "seen?.(entry.version + 1n);", replace: ";" }],
  },
  {
    name: "the very token that a campaign has read may be granted again",
    rule: "two leaders never have the same token, as far as the later one can know",
    stores: ["file"],
    edits: [{ file: RECORD, find: "seen?.(entry.version + 1n);", replace: "seen?.(entry.version);" }],
  },
  {
    name: "Kubernetes: a published token is forgotten when its annotation is damaged",
    rule: "observers are told of no token that was never granted, and of no regression that is none",
    stores: ["observer"],
    edits: [
      {
        file: "src/backends/kubernetes/store.js",
        find: "publishedTerm(lease)?.token ?? lease.version",
        replace: "lease.version",
      },
    ],
  },
  {
    name: "a record that is current and not ours is taken for a stale read",
    rule: "a store that always answers with the newest version and has forgotten a term ends it at the next renewal",
    stores: ["observer", "file"],
    edits: [{ file: HOLD, find: "|| entry.current === true", replace: "" }],
  },
  {
    name: "file: a record is built upon by its number alone",
    rule: "numbers come again in an older copy: the record built upon is the one that was read",
    stores: ["file"],
    edits: [{ file: FILE_STORE, find: "await records.isSame(name, mark)", replace: "true" }],
  },
];
