/** Rules of elections among peers (ADR 042), each broken in turn. */
import type { Rule } from "../../src/testing/sim/index.js";
import type { Mutant } from "./mutants.js";

const NODE = "src/backends/raft/node.js";
const VOTER = "src/backends/raft/voter.js";
const PROPOSER = "src/backends/raft/proposer.js";

/** The simulator's own account of what voters said catches these at once; what counts is that two leaders are seen. */
const SEEN: readonly Rule[] = ["late-stop", "stop-order", "false-loss", "promise", "two-votes"];

export const RAFT_MUTANTS: readonly Mutant[] = [
  {
    name: "Raft: a vote is not written",
    rule: "one vote per voter and term, also over restarts",
    stores: ["peers"],
    edits: [{ file: NODE, find: 'this.#persist({ kind: "vote", ...persist });', replace: ";" }],
  },
  {
    name: "Raft: a vote is written after it was answered",
    rule: "on disk before the answer",
    stores: ["peers"],
    edits: [{ file: NODE, find: "if (!this.#journal.quiet)", replace: "if (false)" }],
  },
  {
    name: "Raft: a promise does not bind acknowledgements",
    rule: "rule 1, for BEAT",
    stores: ["peers"],
    edits: [
      {
        file: VOTER,
        find: "promise.bid.candidate !== bid.candidate)",
        replace: "false)",
      },
    ],
  },
  {
    name: "Raft: a promise binds nothing",
    rule: "rule 1",
    stores: ["peers"],
    ignore: SEEN,
    edits: [
      { file: VOTER, find: "promise.bid.candidate !== bid.candidate)", replace: "false)" },
      { file: VOTER, find: "promise === null || !isBound(state, now) ||", replace: "true ||" },
    ],
  },
  {
    name: "Raft: promises are forgotten at a restart",
    rule: "rule 4",
    stores: ["peers"],
    edits: [{ file: VOTER, find: "quietUntil: options.startedAt + leaseMs", replace: "quietUntil: 0" }],
  },
  {
    name: "Raft: a lease counts from the answer",
    rule: "rules 6 and 7: the lease counts from the sending",
    stores: ["peers"],
    ignore: SEEN,
    edits: [
      { file: "src/backends/raft/leader.js", find: "return asked;", replace: "return readClocks(clock);" },
    ],
  },
  {
    name: "Raft: half is a majority",
    rule: "more than half",
    stores: ["peers"],
    edits: [
      {
        file: "src/backends/raft/quorum.js",
        find: "Math.floor(voters / 2) + 1",
        replace: "Math.floor(voters / 2)",
      },
    ],
  },
  {
    name: "Raft: an answer counts twice",
    rule: "one vote of each voter counts",
    stores: ["peers"],
    edits: [
      {
        file: "src/backends/raft/quorum.js",
        find: "answers.set(voter, value);",
        replace: "answers.set(voter, value).set(`${voter} again`, value);",
      },
    ],
  },
  {
    name: "Raft: a lost disk is made up for by a majority",
    rule: "a voter without a journal rejoins by the answers of all others",
    stores: ["peers"],
    edits: [
      {
        file: NODE,
        find: "await waiting.askAll();",
        replace:
          "(await Promise.allSettled(others.map((name) => askState(peering, name, LIMIT_MS)))).flatMap((one) => one.value ?? []); if (told.length < others.length / 2) throw new Error('too few');",
      },
    ],
  },
  {
    name: "Raft: a pre-vote raises the term",
    rule: "rule 5: a pre-vote changes nothing",
    stores: ["peers"],
    edits: [
      {
        file: VOTER,
        find: "const answer = this.#refused(state, candidate, now);",
        replace: "state.term++; const answer = this.#refused(state, candidate, now);",
      },
    ],
  },
  {
    name: "Raft: terms begin at one",
    rule: "the first term is the largest clock of all voters",
    stores: ["peers"],
    edits: [{ file: VOTER, find: "own > this.#seed ? own : this.#seed", replace: "own" }],
  },
  {
    name: "Raft: a read shows what a minority has",
    rule: "never a value that may not come to be",
    stores: ["peers"],
    edits: [{ file: PROPOSER, find: "if (same.length >= majority)", replace: "if (same.length >= 1)" }],
  },
  {
    name: "Raft: finishing a write gives it a new version",
    rule: "a version is the ballot under which a text was first proposed",
    stores: ["peers"],
    edits: [
      {
        file: PROPOSER,
        find: "const { version, base, text } = value;",
        replace: "const { base, text } = value; const version = ballot;",
      },
    ],
  },
  {
    name: "Raft: a voter that lost what it had accepted counts",
    rule: "its promises do not count until it has accepted again",
    stores: ["peers"],
    edits: [
      { file: PROPOSER, find: "unfit === undefined && blank !== true", replace: "unfit === undefined" },
      {
        file: PROPOSER,
        find: "answer.yes && answer.blank !== true",
        replace: "answer.yes",
      },
    ],
  },
];
