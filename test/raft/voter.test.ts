/** Rules 1 to 5 of ADR 042, one by one. */
import { describe, expect, it } from "vitest";
import type { BeatRequest, Bid, VoteRecord } from "../../src/backends/raft/messages.js";
import { FAR_AHEAD, Voter } from "../../src/backends/raft/voter.js";

const A: Bid = { id: "a1", candidate: "a" };
const A2: Bid = { id: "a2", candidate: "a" };
const B: Bid = { id: "b1", candidate: "b" };
const LEASE = 1_000;

function at(now: number): { now: number; wall: number } {
  return { now, wall: 0 };
}

function voter(records: readonly VoteRecord[] = [], startedAt = 0, floor = 0n): Voter {
  return new Voter({ records, floor, startedAt });
}

function vote(v: Voter, term: bigint, bid: Bid, now: number, leaseMs = LEASE): ReturnType<Voter["vote"]> {
  return v.vote({ kind: "vote", election: "e", term, bid, leaseMs }, at(now));
}

function beat(
  v: Voter,
  term: bigint,
  bid: Bid,
  now: number,
  more: Partial<BeatRequest> = {},
): ReturnType<Voter["beat"]> {
  const fixed = { kind: "beat", election: "e", leaseMs: LEASE, opened: false, version: 0, since: 0 } as const;
  return v.beat({ ...fixed, term, bid, value: "x", ...more }, at(now));
}

function preVote(v: Voter, candidate: string, now: number): boolean {
  return v.prevote({ kind: "prevote", election: "e", candidate }, at(now)).yes;
}

describe("rule 1: a promise", () => {
  it("keeps out votes, pre-votes and beats of others until its end, and not longer", () => {
    const v = voter();
    vote(v, 1n, A, 0);
    expect(beat(v, 1n, A, 10).answer.yes).toBe(true);
    for (const now of [10, 500, 1_009.9]) {
      expect(vote(v, 2n, B, now).answer).toMatchObject({ yes: false, why: "other", term: 1n });
      expect(preVote(v, "b", now)).toBe(false);
      expect(beat(v, 2n, B, now).answer).toMatchObject({ yes: false, why: "other" });
    }
    expect(preVote(v, "b", 1_010)).toBe(true);
    expect(vote(v, 2n, B, 1_010).answer.yes).toBe(true);
  });

  it("ends with the release of that very bid, and late beats do not bring it back", () => {
    const v = voter();
    vote(v, 1n, A, 0);
    beat(v, 1n, A, 0);
    const release = { kind: "release", election: "e", term: 1n, candidate: "a" } as const;
    expect(v.release({ ...release, id: "a9" }, at(1)).held).toBe(false);
    expect(v.release({ ...release, term: 2n, id: "a1" }, at(1)).held).toBe(false);
    expect(vote(v, 2n, B, 1).answer.yes).toBe(false);
    expect(v.release({ ...release, id: "a1" }, at(1)).held).toBe(true);
    expect(v.release({ ...release, id: "a1" }, at(1)).held).toBe(false);
    expect(beat(v, 1n, A, 2).answer).toMatchObject({ yes: false, why: "ended" });
    expect(vote(v, 2n, B, 2).answer.yes).toBe(true);
  });

  it("released in favour of an heir, it is left to that one for a while; a late release names nobody", () => {
    const v = voter();
    const open = (term: bigint, bid: Bid, now: number): void => {
      expect(vote(v, term, bid, now).answer.yes).toBe(true);
      expect(beat(v, term, bid, now).answer.yes).toBe(true);
    };
    const release = (
      term: bigint,
      bid: Bid,
      now: number,
      heir?: { candidate: string; forMs: number },
    ): void => {
      v.release(
        { kind: "release", election: "e", term, candidate: bid.candidate, id: bid.id, heir },
        at(now),
      );
    };
    const C: Bid = { id: "c1", candidate: "c-0a1b" };
    open(1n, A, 0);
    release(1n, A, 10, { candidate: "c", forMs: 500 });
    expect(preVote(v, "b", 11)).toBe(false);
    expect(vote(v, 2n, B, 509).answer).toMatchObject({ yes: false, why: "heir", leftMs: 1 });
    const request = { kind: "prevote", election: "e", candidate: "c-0a1b" } as const;
    expect(v.prevote(request, at(11))).toMatchObject({ yes: true, heir: true });
    expect(vote(v, 2n, B, 510).answer.yes).toBe(true);
    beat(v, 2n, B, 510);
    release(1n, A, 520, { candidate: "c", forMs: 60_000 }); // late
    release(2n, B, 520);
    expect(preVote(v, "a", 521)).toBe(true);
    open(3n, A, 521);
    release(3n, A, 530, { candidate: "c-0a1b", forMs: 1e9 });
    expect(vote(v, 4n, B, 60_529).answer).toMatchObject({ why: "heir", leftMs: 1 }); // never longer than a minute
    open(4n, C, 531);
    release(4n, C, 540); // whoever was named has led: it is over
    expect(preVote(v, "b", 541)).toBe(true);
    open(5n, A, 541);
    release(5n, A, 550, { candidate: "", forMs: 500 });
    expect(preVote(v, "b", 551)).toBe(true);
  });

  it("does not keep out the same candidate, and the longer lease of both stays", () => {
    const v = voter();
    vote(v, 1n, A, 0, 5_000);
    beat(v, 1n, A, 0, { leaseMs: 5_000 });
    expect(vote(v, 2n, A2, 10).persist?.leaseMs).toBe(5_000);
    expect(beat(v, 1n, A, 20).answer).toMatchObject({ yes: false, why: "older" });
    expect(beat(v, 2n, A2, 20).answer.yes).toBe(true);
    expect(vote(v, 3n, B, 4_999).answer.yes).toBe(false);
  });
});

describe("rule 2: one vote per term", () => {
  it("is handed out to be stored, and repeated only to the same bid", () => {
    const v = voter();
    const first = vote(v, 5n, A, 0);
    expect(first.persist).toEqual({ election: "e", term: 5n, vote: A, leader: null, leaseMs: LEASE });
    expect(vote(v, 5n, A, 1)).toEqual({ answer: { kind: "vote", yes: true, term: 5n } });
    expect(vote(v, 5n, B, 1).answer).toMatchObject({ yes: false, why: "older", term: 5n });
    expect(vote(v, 5n, A2, 1).answer.yes).toBe(false);
    expect(vote(v, 4n, A, 1).answer.yes).toBe(false);
  });

  it("survives a restart", () => {
    const v = voter([{ election: "e", term: 5n, vote: A, leader: null, leaseMs: 10 }], 0);
    expect(vote(v, 5n, B, 100).answer.yes).toBe(false);
    expect(vote(v, 5n, A, 100).answer.yes).toBe(true);
  });

  it("is not given to a term from the far future, which is not learned either", () => {
    const v = voter();
    vote(v, 100n, A, 0);
    for (const term of [2n ** 53n, 100n + FAR_AHEAD + 1n])
      expect(vote(v, term, B, 10).answer).toMatchObject({ yes: false, why: "ahead", term: 100n });
    expect(beat(v, 2n ** 53n, B, 10).answer).toMatchObject({ yes: false, why: "ahead", term: 100n });
    expect(vote(v, 101n, B, 10).answer.yes).toBe(true);
  });

  it("is given above the seed, however far ahead the clock was that it came from", () => {
    const seed = 20n * FAR_AHEAD;
    const v = new Voter({ records: [], floor: 0n, seed, startedAt: 0 });
    expect(vote(v, seed + FAR_AHEAD + 1n, A, 0).answer).toMatchObject({ yes: false, why: "ahead" });
    expect(vote(v, seed + 1n, A, 0).answer.yes).toBe(true);
  });
});

describe("rule 3: whom it acknowledges", () => {
  it("a higher term, which it stores first; then no other bid of that term", () => {
    const v = voter();
    expect(beat(v, 7n, A, 0).persist).toEqual({
      election: "e",
      term: 7n,
      vote: null,
      leader: A,
      leaseMs: LEASE,
    });
    expect(beat(v, 7n, A, 1).persist).toBeUndefined();
    expect(beat(v, 7n, A, 1, { leaseMs: 9_000 }).persist?.leaseMs).toBe(9_000);
    expect(beat(v, 6n, B, 20_000).answer).toMatchObject({ yes: false, why: "older", term: 7n });
    expect(beat(v, 7n, B, 20_000).answer).toMatchObject({ yes: false, why: "other" });
    expect(beat(v, 7n, B, 20_000, { opened: true }).answer).toMatchObject({ yes: false, why: "other" });
  });

  it("the loser's voter acknowledges the winner only once its term is open", () => {
    const v = voter();
    vote(v, 7n, B, 0);
    expect(beat(v, 7n, A, 1).answer).toMatchObject({ yes: false, why: "other" });
    const adopted = beat(v, 7n, A, 1, { opened: true });
    expect(adopted.answer.yes).toBe(true);
    expect(adopted.persist).toMatchObject({ term: 7n, vote: B, leader: A });
    expect(vote(v, 7n, A, 2).answer.yes).toBe(false);
  });

  it("needs no second write after the vote", () => {
    const v = voter();
    vote(v, 7n, A, 0);
    expect(beat(v, 7n, A, 1)).toMatchObject({ answer: { yes: true }, persist: undefined });
  });
});

describe("rule 4: after a restart", () => {
  const records: VoteRecord[] = [{ election: "e", term: 5n, vote: A, leader: null, leaseMs: 800 }];

  it("votes for nobody for the lease on disk, and knows only the leader on disk", () => {
    const v = voter(records, 1_000);
    expect(vote(v, 6n, B, 1_799).answer).toMatchObject({ yes: false, why: "quiet" });
    expect(preVote(v, "a", 1_799)).toBe(false);
    expect(beat(v, 6n, B, 1_799).answer).toMatchObject({ yes: false, why: "quiet" });
    expect(beat(v, 6n, A2, 1_799).answer).toMatchObject({ yes: false, why: "quiet" });
    expect(v.who("e", at(1_500)).quietMs).toBe(300);
    expect(beat(v, 5n, A, 1_799).answer.yes).toBe(true);
    expect(vote(v, 6n, B, 1_801).answer).toMatchObject({ yes: false, why: "other" });
    expect(vote(voter(records, 1_000), 6n, B, 1_800).answer.yes).toBe(true);
  });

  it("the release of the leader on disk does not shorten it: an older bid may have been promised more", () => {
    const v = voter(records, 1_000);
    v.release({ kind: "release", election: "e", term: 5n, candidate: "a", id: "a1" }, at(1_000));
    expect(vote(v, 6n, B, 1_001).answer.yes).toBe(false);
    expect(vote(v, 6n, B, 1_800).answer.yes).toBe(true);
  });

  it("a voter that lost its disk refuses the terms it was told of, except one that is open", () => {
    const v = voter([{ election: "e", term: 5n, vote: null, leader: null, leaseMs: 800 }], 1_000);
    expect(beat(v, 5n, A, 1_100, { opened: true }).answer.yes).toBe(false);
    expect(vote(v, 5n, A, 3_000).answer.yes).toBe(false);
    expect(beat(v, 5n, A, 3_000).answer.yes).toBe(false);
    expect(beat(v, 5n, A, 3_000, { opened: true }).answer.yes).toBe(true);
  });
});

describe("rule 5: a pre-vote", () => {
  it("changes nothing, and keeps nothing of elections that are only asked about", () => {
    const v = voter();
    expect(preVote(v, "a", 0)).toBe(true);
    v.who("other", at(0));
    expect(v.records()).toEqual([]);
    vote(v, 1n, A, 0);
    expect(preVote(v, "b", 1)).toBe(false);
    expect(preVote(v, "a", 1)).toBe(true);
    expect(preVote(v, "b", 200)).toBe(true);
    expect(v.records()[0]!.term).toBe(1n);
  });
});

describe("reports", () => {
  it("show the newest value, whatever the order of beats, and count changes", () => {
    const v = voter();
    vote(v, 1n, A, 0);
    beat(v, 1n, A, 0, { version: 1, value: "one" });
    beat(v, 1n, A, 1, { version: 0, value: "zero" });
    const before = v.who("e", at(1));
    expect(before.promised).toMatchObject({ version: 1, value: "one", term: 1n });
    expect(beat(v, 1n, A, 2, { version: 1, value: undefined }).answer.version).toBe(1);
    expect(v.who("e", at(2)).change).toBe(before.change);
    beat(v, 1n, A, 3, { version: 2, value: "two" });
    expect(v.who("e", at(3)).change).toBeGreaterThan(before.change);
    expect(v.who("e", at(5_000)).promised).toBeNull();
  });

  it("a voter keeps a bounded number of elections", () => {
    const v = new Voter({ records: [], floor: 0n, startedAt: 0, mostElections: 1 });
    vote(v, 1n, A, 0);
    const refused = v.vote({ kind: "vote", election: "f", term: 1n, bid: A, leaseMs: 1 }, at(0));
    expect(refused.answer).toMatchObject({ yes: false, why: "unfit" });
    expect(refused.persist).toBeUndefined();
  });
});
