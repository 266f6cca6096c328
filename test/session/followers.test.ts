/** Who follows a session, and the holds on it while nobody does. On a virtual clock. */
import { beforeEach, describe, expect, it } from "vitest";
import { SessionFollowers } from "../../src/session/followers.js";
import { SetClock } from "../support/set-clock.js";

const TTL_MS = 6_000;

interface Held {
  readonly name: string;
  state: string;
  handedOut: number;
}

let clock: SetClock;
let candidates: Set<Held>;
let expired: string[];
/** When the request was sent that last extended the session. */
let extendedAt: number;
let followers: SessionFollowers<Held>;

beforeEach(() => {
  clock = new SetClock();
  [candidates, expired] = [new Set(), []];
  extendedAt = 0;
  followers = new SessionFollowers<Held>({
    ...{ clock, ttlMs: TTL_MS, candidates: () => candidates, extendedAt: () => extendedAt },
    expired: (candidate) => {
      candidates.delete(candidate);
      expired.push(candidate.name);
    },
  });
});

function handOut(name: string, state = "held"): Held {
  const held = { name, state, handedOut: clock.now() };
  candidates.add(held);
  followers.handedOut();
  return held;
}

const follow = (told: string[] = []): (() => void) =>
  followers.follow({ attempted: () => void told.push("attempted"), lost: () => void told.push("lost") });

describe("a hold that nobody follows", () => {
  it("expires a ttl after the request that last extended it, each at its own time", async () => {
    const first = handOut("a");
    await clock.advance(1_000);
    handOut("b");
    await clock.advance(1_000);
    first.handedOut = clock.now();
    await clock.advance(TTL_MS - 1_001);
    expect(expired).toEqual([]);
    await clock.advance(1);
    expect(expired).toEqual(["b"]);
    await clock.advance(1_000);
    expect([expired, clock.timers]).toEqual([["b", "a"], 0]);
  });

  it("is one that was handed out: who waits is not removed", async () => {
    handOut("waits", "waiting");
    await clock.advance(2 * TTL_MS);
    expect([expired, clock.timers]).toEqual([[], 0]);
  });

  it("is watched again when the last one who followed has gone, and not before", async () => {
    const [first, second] = [follow(), follow()];
    handOut("a");
    expect(clock.timers).toBe(0);
    first();
    expect(clock.timers).toBe(0);
    second();
    expect(clock.timers).toBe(1);
    await clock.advance(TTL_MS);
    expect(expired).toEqual(["a"]);
  });

  it("lives on what the session was extended by while somebody followed", async () => {
    const leave = follow();
    handOut("a");
    await clock.advance(2 * TTL_MS);
    extendedAt = clock.now() - 1_000;
    leave();
    expect(expired).toEqual([]);
    await clock.advance(1_000);
    handOut("b");
    // What happens to the session afterwards is not for those that are not renewed.
    extendedAt = clock.now();
    await clock.advance(TTL_MS - 2_001);
    expect(expired).toEqual([]);
    await clock.advance(1);
    expect(expired).toEqual(["a"]);
    await clock.advance(2_000);
    expect(expired).toEqual(["a", "b"]);
  });

  it("is left alone as soon as somebody follows, and when the session has ended", async () => {
    handOut("a");
    const leave = follow();
    expect(clock.timers).toBe(0);
    leave();
    expect(clock.timers).toBe(1);
    followers.end();
    expect(clock.timers).toBe(0);
    handOut("b");
    follow()();
    await clock.advance(2 * TTL_MS);
    expect([expired, clock.timers]).toEqual([[], 0]);
  });
});

it("those who follow are told of attempts until the end, and of a loss; who has left is told nothing", () => {
  const [stays, goes]: [string[], string[]] = [[], []];
  follow(stays);
  const leave = follow(goes);
  followers.attempted({ latencyMs: 1 });
  leave();
  followers.attempted({ latencyMs: 1 });
  followers.end();
  followers.attempted({ latencyMs: 1 });
  followers.lost();
  expect([stays, goes]).toEqual([["attempted", "attempted", "lost"], ["attempted"]]);
});
