/** Rules of leases that many elections share, and of stores that lose their memory, each broken in turn. */
import type { Mutant } from "./mutants.js";

const SHARED_LEASE = "src/backends/etcd/shared-lease.js";
const ORPHANS = "src/backends/etcd/orphaned-keys.js";
const VERIFY_KEYS = "src/backends/etcd/verify-keys.js";
const OBSERVE = "src/election/observe.js";

export const LEASE_MUTANTS: readonly Mutant[] = [
  {
    name: "the clocks of a question are read later than its instant",
    rule: "every extension carries the clocks of its own question",
    stores: ["queue"],
    edits: [
      {
        file: "src/law/confirm.js",
        find: "marginMs, hold.asked, hold.ttlMs);",
        replace: `marginMs, { now: hold.asked.now, wall: clock.wall() - clock.now() + hold.asked.now,
                boot: clock.boot() - clock.now() + hold.asked.now }, hold.ttlMs);`,
      },
    ],
  },
  {
    name: "what a campaign meets is not remembered",
    rule: "what a campaign has met is the floor for the next token",
    stores: ["queue"],
    edits: [
      {
        file: "src/election/candidate.js",
        find: "seen: (token) => this.floor.seen(this.#followed.met(token, wait, signal))",
        replace: "seen: () => {}",
      },
    ],
  },
  {
    name: "a lower token is accepted",
    rule: "a regression is refused",
    stores: ["queue"],
    edits: [
      {
        file: "src/law/token-floor.js",
        find: "if (token >= lowest)",
        replace: "if (true)",
      },
    ],
  },
  {
    name: "an observer leaves out the leader of a store that went back",
    rule: "observers name the leader that the store names",
    stores: ["queue"],
    edits: [
      {
        file: OBSERVE,
        find: 'return regression ? "regression" : "news";',
        replace: 'return regression ? "known" : "news";',
      },
    ],
  },
  {
    name: "an observer is shown a lower token without a word",
    rule: "a regression is loud",
    stores: ["queue"],
    edits: [{ file: OBSERVE, find: "options.failed(wentBack(leader.token, highest));", replace: ";" }],
  },
  {
    name: "etcd: a key that is gone is extended with its lease",
    rule: "an extension counts only for a key that was read since",
    stores: ["queue"],
    edits: [
      {
        file: VERIFY_KEYS,
        find: "if (token !== undefined && own?.createRevision === token) {",
        replace: "if (token !== undefined) {",
      },
    ],
  },
  {
    name: "etcd: only some of a lease's keys are read",
    rule: "an extension counts only for a key that was read since",
    stores: ["queue"],
    edits: [
      {
        file: VERIFY_KEYS,
        find: "split(others.filter((candidateKey) => !unchanged(candidateKey)))",
        replace: "split(others.filter((candidateKey) => !unchanged(candidateKey)).slice(0, 1))",
      },
      {
        file: SHARED_LEASE,
        find: `if (candidateKey.extension !== undefined && candidateKey.extension.asked.now > candidateKey.handedOut)
                return candidateKey.extension;`,
        replace: `if (this.extension.asked.now > candidateKey.handedOut)
                return this.extension;`,
      },
    ],
  },
  {
    name: "etcd: the key of an expired term waits for the next renewal",
    rule: "the key of a term that ran out goes when the lease would have ended",
    stores: ["queue"],
    edits: [{ file: ORPHANS, find: "this.#wakeAt(from);", replace: "this.#timerAt = from;" }],
  },
  {
    name: "etcd: a key that is not to be removed before a time is removed with the others",
    rule: "the key of a term that ran out stays until its lease would have ended",
    stores: ["queue"],
    edits: [{ file: ORPHANS, find: "from <= now ? [candidateKey] : []", replace: "[candidateKey]" }],
  },
  {
    name: "etcd: a key that was seen once is not read again, though the store was written to",
    rule: "a key is as it was only while the store has the revision at which it was seen",
    stores: ["queue"],
    edits: [{ file: VERIFY_KEYS, find: "seen.revision === answer.revision", replace: "true" }],
  },
  {
    name: "etcd: a candidate behind us is taken for one ahead",
    rule: "no regression is told where there is none (a bug that the simulator found)",
    stores: ["queue"],
    edits: [
      {
        file: "src/backends/etcd/candidate-key.js",
        find: "(this.token === undefined || kv.createRevision < this.token)",
        replace: "true",
      },
    ],
  },
];
