/** Rules of a vacancy that is left to somebody, each broken in turn. */
import type { Mutant } from "./mutants.js";

const LEASE = "src/record/lease.js";
const RECORDS: Mutant["stores"] = ["observer", "timed", "file"];

export const TRANSFER_MUTANTS: readonly Mutant[] = [
  {
    name: "an heir that does not come is waited for without end",
    rule: "others leave a vacancy to the heir for a bounded time, by their own clocks",
    stores: RECORDS,
    edits: [
      {
        file: LEASE,
        find: "return seen?.renewalId === renewalIdOf(entry) ? seen.at + forMs - now : forMs;",
        replace: "return forMs;",
      },
    ],
  },
  {
    name: "the heir takes what is not vacant",
    rule: "an heir takes a vacancy; it does not take over from a leader",
    stores: ["observer", "timed"],
    edits: [
      // The wish is kept through the next term, and honoured there.
      {
        file: "src/record/codec.js",
        find: "holder === null ? heirFrom(heir, heirMs) : undefined",
        replace: "heirFrom(heir, heirMs)",
      },
      {
        file: LEASE,
        find: "return { holder: candidate, ttlMs,",
        replace: 'return { heir: { candidate: "n1", forMs: 1000 }, holder: candidate, ttlMs,',
      },
      {
        file: LEASE,
        find: "if (holder === candidate)",
        replace:
          "if (holder === candidate || (entry.record.heir !== undefined && isHeir(candidate, entry.record.heir.candidate)))",
      },
    ],
  },
  {
    name: "a term is handed over before its work has stopped",
    rule: "a transfer ends the term in the usual order",
    edits: [
      {
        file: "src/election/transfer.js",
        find: "const ending = end();",
        replace: 'const ending = tenure.end("resigned", "handed over", undefined);',
      },
    ],
  },
  {
    name: "a candidate stands back without end",
    rule: "a vacancy is left to others for a ttl at most",
    stores: RECORDS,
    edits: [
      {
        file: "src/record/stand-back.js",
        find: "return Math.min(this.#candidacy.standBackMs?.() ?? 0, this.#candidacy.ttlMs);",
        replace: "return this.#candidacy.standBackMs?.() ?? 0;",
      },
    ],
  },
  {
    name: "a vacancy is left to others anew at every look",
    rule: "standing back is counted from when the vacancy was first seen",
    stores: RECORDS,
    edits: [
      {
        file: "src/record/stand-back.js",
        find: "if (vacancy !== this.#vacancy) {",
        replace: "{",
      },
    ],
  },
];
