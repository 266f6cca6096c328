/** Rules about stores that time leases by a clock that somebody may set, each broken in turn. */
import type { Mutant } from "./mutants.js";

const LEASE = "src/record/lease.js";

export const STORE_CLOCK_MUTANTS: readonly Mutant[] = [
  {
    name: "the store's clock alone ends a lease",
    rule: "who saw a renewal arrive waits for its holder by its own clock too",
    stores: ["timed"],
    edits: [{ file: LEASE, find: "Math.min(own, Math.max(left, stopped))", replace: "left" }],
  },
  {
    name: "a store's clock that was set back keeps a dead leader",
    rule: "who saw no change for a whole ttl by its own clock does not wait for the store's",
    stores: ["timed"],
    edits: [
      {
        file: LEASE,
        find: "Math.min(own, Math.max(left, stopped))",
        replace: "Math.max(left, stopped)",
      },
    ],
  },
  {
    name: "a holder is taken for stopped although its clock may run slower",
    rule: "the challenger allows for clocks that run at different rates",
    stores: ["timed"],
    edits: [
      {
        file: LEASE,
        find: "stopMs / SLOWEST_CLOCK + (ttlMs - stopMs) * OVERLOOKED",
        replace: "stopMs",
      },
    ],
  },
];
