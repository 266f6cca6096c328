/** Rules of locks that sessions hold (Consul), each broken in turn. */
import type { Rule } from "../../src/testing/sim/index.js";
import type { Mutant } from "./mutants.js";

const SHARED_SESSION = "src/backends/consul/shared-session.js";
const CANDIDATE_LOCK = "src/backends/consul/candidate-lock.js";

/** The simulator's own reckoning of deadlines catches these at once; what counts is that two leaders are seen. */
const SEEN: readonly Rule[] = ["late-stop", "stop-order", "false-loss"];

export const CONSUL_MUTANTS: readonly Mutant[] = [
  {
    name: "Consul: a renewal counts for as long as Consul waits",
    rule: "a deposed server may have answered: a renewal counts for one ttl, not two",
    stores: ["locks"],
    ignore: SEEN,
    edits: [
      {
        file: "src/backends/consul/hold.js",
        find: "this.ttlMs = session.ttlMs;",
        replace: "this.ttlMs = 2 * session.ttlMs;",
      },
    ],
  },
  {
    name: "Consul: no lock delay",
    rule: "a session that ends early lets nobody lead before the old leader's deadline",
    stores: ["locks"],
    edits: [
      {
        file: "src/backends/consul/session-pool.js",
        find: "Math.min(ttlMs, LONGEST_LOCK_DELAY_MS)",
        replace: "0",
      },
    ],
  },
  {
    name: "Consul: a session that one server does not know is taken for lost",
    rule: "lost only if a consistent read agrees",
    stores: ["locks"],
    edits: [
      {
        file: SHARED_SESSION,
        find: "if (await this.#client.hasSession(this.id, limits))",
        replace: "if (false)",
      },
    ],
  },
  {
    name: "Consul: locks are not looked at when their session is renewed",
    rule: "an extension counts only for a lock that was there",
    stores: ["locks"],
    edits: [{ file: SHARED_SESSION, find: "await this.#verifyAll(limits);", replace: ";" }],
  },
  {
    name: "Consul: a renewal counts from its answer",
    rule: "time counts from the question",
    stores: ["locks"],
    ignore: SEEN,
    edits: [
      {
        file: SHARED_SESSION,
        find: "return { asked };",
        replace: "return { asked: readClocks(this.clock) };",
      },
    ],
  },
  {
    name: "Consul: what a campaign reads does not count as seen",
    rule: "a token below one that a campaign has met is refused",
    stores: ["locks"],
    edits: [{ file: "src/backends/consul/take-lock.js", find: "candidateLock.met(kv);", replace: ";" }],
  },
  {
    name: "Consul: a release is repeated on the lock of the next term",
    rule: "a release that was answered late does not end the next term on the same session (a bug that the simulator found)",
    stores: ["locks"],
    edits: [{ file: CANDIDATE_LOCK, find: "|| !this.#owner.isCurrent(this)", replace: "" }],
  },
  {
    name: "Consul: locks without an owner stay",
    rule: "what nobody owns any more is released",
    stores: ["locks"],
    edits: [
      {
        file: "src/backends/consul/orphaned-locks.js",
        find: "await candidateLock.vacate(limits);",
        replace: ";",
      },
    ],
  },
];
