/** What happens in the moment in which a term begins or ends: on a virtual clock. */
import { beforeEach, describe, expect, it } from "vitest";
import { readClocks } from "../../src/index.js";
import {
  ATTEMPT_MS,
  DRAIN_MS,
  MARGIN_MS,
  openScene,
  outcome,
  silence,
  TTL_MS,
} from "../support/hand-backend.js";
import type { Scene } from "../support/hand-backend.js";

const HELD_MS = TTL_MS - MARGIN_MS;

describe("a grant that took the whole time to the deadline", () => {
  let scene: Scene;
  beforeEach(() => {
    scene = openScene();
  });

  it("is confirmed by a renewal before a term begins; one with a millisecond left is not", async () => {
    const { backend, clock, election } = scene;
    backend.onCampaign = () => clock.stall(HELD_MS);
    const term = await election.campaign();
    expect(backend.calls).toEqual(["campaign", "renew"]);
    expect(term.remainingMs).toBe(HELD_MS);
    await election.close();
    const other = openScene();
    other.backend.onCampaign = () => other.clock.stall(HELD_MS - 1);
    expect((await other.election.campaign()).remainingMs).toBe(1);
    expect(other.backend.calls).toEqual(["campaign"]);
    await other.election.close();
  });

  it("is given back if confirming it took as long again", async () => {
    const { backend, clock, election } = scene;
    backend.onCampaign = () => clock.stall(HELD_MS);
    backend.onRenew = () => clock.stall(HELD_MS);
    await expect(election.tryCampaign()).rejects.toMatchObject({ code: "timeout" });
    expect(backend.calls).toEqual(["campaign", "renew", "release"]);
    await election.close();
  });

  it("is given back if confirming it is not answered; the call is told to stop", async () => {
    const { backend, clock, election } = scene;
    let signal: AbortSignal | undefined;
    backend.onCampaign = () => clock.stall(HELD_MS);
    backend.onRenew = (options) => {
      ({ signal } = options);
      return silence();
    };
    const errors: unknown[] = [];
    election.on("error", ({ error }) => errors.push(error));
    const stop = new AbortController();
    const campaign = outcome(election.campaign({ signal: stop.signal }));
    await new Promise((resolve) => setImmediate(resolve));
    expect(signal?.aborted).toBe(false);
    await clock.advance(ATTEMPT_MS);
    expect(signal?.aborted).toBe(true);
    expect(backend.count("release")).toBe(1);
    expect(String(errors[0])).toContain("confirming was not answered");
    stop.abort();
    await clock.advance(ATTEMPT_MS);
    expect(campaign.error).toBe(stop.signal.reason);
    await election.close();
  });
});

describe("a term", () => {
  let scene: Scene;
  beforeEach(() => {
    scene = openScene();
  });

  it("that ran out tells its backend when the lease ends, by the last question that was answered", async () => {
    const { backend, clock, election } = scene;
    const abandoned: number[] = [];
    backend.granted = { abandon: (at) => void abandoned.push(at) };
    await clock.advance(100);
    const term = await election.campaign();
    await clock.advance(5_000); // renewed once, at nine tenths of a third of the ttl
    const asked = clock.now() + term.remainingMs - HELD_MS;
    expect(asked).toBeGreaterThan(100);
    backend.onRenew = silence;
    await clock.advance(TTL_MS);
    expect(term.end?.reason).toBe("expired");
    expect(abandoned).toEqual([asked + TTL_MS]);
    await election.close();
  });

  it("whose work resigns by itself is not kept waiting for that work", async () => {
    const { clock, election } = scene;
    const done: number[] = [];
    const stop = new AbortController();
    const running = election.run(
      async (term) => {
        await term.resign();
        done.push(clock.now());
        stop.abort();
      },
      { signal: stop.signal },
    );
    await clock.advance(0);
    expect(done).toEqual([0]);
    await clock.advance(DRAIN_MS);
    await running;
    await election.close();
  });

  it("is safe again only after it was in jeopardy", async () => {
    const { backend, clock, election } = scene;
    const told: string[] = [];
    election.on("jeopardy", () => told.push("jeopardy"));
    election.on("safe", () => told.push("safe"));
    await election.campaign();
    await clock.advance(HELD_MS);
    expect(backend.count("renew")).toBeGreaterThan(1);
    expect(told).toEqual([]);
    await election.close();
  });

  it("is not in jeopardy by a renewal that failed at its deadline: it is over", async () => {
    const { backend, clock, election } = scene;
    const told: string[] = [];
    election.on("jeopardy", () => told.push("jeopardy"));
    election.on("ended", ({ end }) => told.push(end.reason));
    election.on("renewal", ({ ok, remainingMs }) => told.push(`${ok} ${remainingMs}`));
    const term = await election.campaign();
    backend.onRenew = () => {
      clock.stall(term.remainingMs);
      throw new Error("no answer");
    };
    await clock.advance(TTL_MS);
    expect(told).toEqual(["expired", "false 0"]);
    await election.close();
  });

  it("that is lost in two ways at once ends once", async () => {
    const { backend, clock, election } = scene;
    const revoked = AbortSignal.abort();
    let unfollowed = 0;
    backend.granted = {
      revoked,
      session: {
        extension: { asked: readClocks(clock) },
        follow: (follower) => {
          follower.lost();
          return () => void unfollowed++;
        },
      },
    };
    const ends: string[] = [];
    election.on("ended", ({ end }) => ends.push(end.reason));
    const term = await election.campaign();
    expect((await term.ended).reason).toBe("revoked");
    await clock.advance(TTL_MS);
    expect(ends).toEqual(["revoked"]);
    expect(clock.timers).toBe(0);
    expect(unfollowed).toBeGreaterThan(0);
    await election.close();
  });

  it("whose release is not answered says so", async () => {
    const { backend, clock, election } = scene;
    const errors: string[] = [];
    election.on("error", ({ error }) => errors.push(String(error)));
    const term = await election.campaign();
    backend.onRelease = silence;
    const resigned = outcome(term.resign());
    await clock.advance(3 * ATTEMPT_MS);
    expect(resigned.settled).toBe(true);
    expect(errors).toHaveLength(1);
    expect(errors[0]).toContain("releasing was not answered");
    await election.close();
  });
});
