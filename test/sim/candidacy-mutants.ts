/** Rules for candidates that change their mindsand for observers: see mutants.ts. */
import type { Mutant } from "./mutants.js";

const CANDIDATE = "src/election/candidate.js";
const OBSERVE = "src/election/observe.js";
const SHARED_LEASE = "src/backends/etcd/shared-lease.js";

export const CANDIDACY_MUTANTS: readonly Mutant[] = [
  {
    name: "campaigns again before its last term is given back",
    rule: "one term after the other, and their events in that order",
    edits: [
      {
        file: CANDIDATE,
        find: "await untilAborted(signal, this.#last);",
        replace: "void 0;",
      },
    ],
  },
  {
    name: "a term that has ended comes back after nobody",
    rule: "a term that has ended stays ended, for observers too",
    edits: [{ file: OBSERVE, find: "if (leader.token === this.#vacated)", replace: "if (false)" }],
  },
  {
    name: "etcd: a put that comes after its candidate has left stays",
    rule: "a put whose answer is not known is taken away, though its candidate does not come back",
    stores: ["queue"],
    edits: [
      {
        file: SHARED_LEASE,
        find: "candidateKey.sent && candidateKey.token === undefined && candidateKey.lost === undefined",
        replace: "false",
      },
    ],
  },
];
