/** Who may begin to vote, and with what. */
import { describe, expect, it } from "vitest";
import { beginning } from "../../src/backends/raft/join.js";
import type { Told } from "../../src/backends/raft/join.js";

function told(more: Partial<Told>): Told {
  return { birth: "b?", started: false, births: [], wall: 1_000, seed: 0n, votes: [], ballots: [], ...more };
}

describe("a voter without a past", () => {
  it("begins when nobody has one, above every clock", () => {
    const begun = beginning("b1", 1_000, [told({ birth: "b2", wall: 3_000 }), told({ birth: "b3" })]);
    expect(begun?.start).toEqual({ kind: "start", floor: 0n, seed: 3_000n, births: ["b1", "b2", "b3"] });
  });

  it("begins when those that began knew it as empty, whoever else is still waiting", () => {
    const first = told({ birth: "b2", started: true, births: ["b1", "b2", "b3"], seed: 7n });
    expect(beginning("b1", 1, [first, told({ birth: "b3" })])?.start.births).toEqual(["b1", "b2", "b3"]);
  });

  it("waits when its disk was lost and another one's too", () => {
    const first = told({ birth: "b2", started: true, births: ["b1", "b2", "b3"] });
    expect(beginning("b1-new", 1, [first, told({ birth: "b3-new" })])).toBeUndefined();
  });

  it("after a lost disk takes the highest of all others, and none of their votes", () => {
    const begun = beginning("new", 1, [
      told({
        birth: "b2",
        started: true,
        seed: 5n,
        votes: [{ name: "e", term: 7n, leaseMs: 10 }],
        ballots: [{ name: "k", ballot: 3n }],
      }),
      told({
        birth: "b3",
        started: true,
        seed: 6n,
        votes: [
          { name: "e", term: 6n, leaseMs: 99 },
          { name: "f", term: 1n, leaseMs: 1 },
        ],
        ballots: [{ name: "k", ballot: 2n }],
      }),
    ]);
    expect(begun).toEqual({
      start: { kind: "start", floor: 0n, seed: 6n, births: [] },
      votes: [
        { election: "e", term: 7n, vote: null, leader: null, leaseMs: 99 },
        { election: "f", term: 1n, vote: null, leader: null, leaseMs: 1 },
      ],
      registers: [{ kind: "register", key: "k", promised: 3n, accepted: null, blank: true }],
    });
  });
});
