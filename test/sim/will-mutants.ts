/** Rules of a release in the name of another process, each broken in turn. */
import type { Mutant } from "./mutants.js";

export const WILL_MUTANTS: readonly Mutant[] = [
  {
    name: "a release for another is not guarded by the token",
    rule: "a will of an old term never harms a later one, not even of the same candidate",
    stores: ["observer", "timed"],
    edits: [
      {
        file: "src/record/release-claim.js",
        find: " || tokenOf(entry) !== claim.token",
        replace: "",
      },
    ],
  },
  {
    name: "a release for another is not guarded by the candidate",
    rule: "a will never harms a successor",
    stores: ["observer", "timed"],
    edits: [
      {
        file: "src/record/release-claim.js",
        find: "entry.record.holder !== claim.candidate || tokenOf(entry) !== claim.token",
        replace: "entry.record.holder === null",
      },
    ],
  },
  {
    name: "etcd: a release for another takes the newest key up to its token",
    rule: "a will deletes the key of its own term and no other",
    stores: ["queue"],
    edits: [
      {
        file: "src/backends/etcd/release-claim.js",
        find: "kv?.createRevision !== token || (await identify(kv, limits)) !== candidate",
        replace: "kv === undefined",
      },
      {
        file: "src/backends/etcd/release-claim.js",
        find: 'when: [{ target: "create", key: kv.key, value: token }],',
        replace: "when: [],",
      },
      {
        file: "src/backends/etcd/release-claim.js",
        find: "limit: 1, maxCreateRevision: token",
        replace: "limit: 1",
      },
    ],
  },
  {
    name: "an eviction frees the lease at once",
    rule: "who succeeds an evicted leader waits out what that one may believe",
    stores: ["observer", "timed"],
    edits: [
      {
        file: "src/record/release-claim.js",
        find: "holder: EVICTED_HOLDER,",
        replace: "holder: null,",
      },
    ],
  },
];
