/** What a leader does with its term: publish a value, guard a resource. On a virtual clock. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { MARGIN_MS, openScene, outcome, silence, TTL_MS } from "../support/hand-backend.js";
import type { Scene } from "../support/hand-backend.js";

const HELD_MS = TTL_MS - MARGIN_MS;
const away = (): never => {
  throw new Error("away");
};

let here: Scene;

beforeEach(() => {
  here = openScene();
});

afterEach(async () => {
  await here.election.close();
  expect(here.clock.timers).toBe(0);
});

describe("proclaiming", () => {
  it("publishes, extends the lease, and is then the term's value", async () => {
    const { clock, election, backend } = here;
    const term = await election.campaign();
    await clock.advance(1_000);
    await term.proclaim("there");
    expect([term.value, term.remainingMs, backend.count("proclaim")]).toEqual(["there", HELD_MS, 1]);
  });

  it("that fails leaves value and deadline as they were", async () => {
    const { clock, election, backend } = here;
    const term = await election.campaign();
    await clock.advance(1_000);
    backend.onProclaim = away;
    await expect(term.proclaim("there")).rejects.toThrow("away");
    expect([term.value, term.remainingMs]).toEqual([election.candidate, HELD_MS - 1_000]);
  });

  it("learns that the term is lost, and ends it", async () => {
    const { election, backend } = here;
    backend.onProclaim = () => "lost";
    const term = await election.campaign();
    await expect(term.proclaim("there")).rejects.toMatchObject({ code: "not-leader", token: 1n });
    expect(term.end).toMatchObject({
      reason: "revoked",
      detail: expect.stringMatching("someone else leads"),
    });
    expect(term.value).toBe(election.candidate);
  });

  it("that is answered after the deadline has published nothing that counts", async () => {
    const { clock, election, backend } = here;
    const term = await election.campaign();
    backend.onRenew = silence;
    backend.onProclaim = () => clock.stall(HELD_MS);
    await expect(term.proclaim("there")).rejects.toMatchObject({ code: "not-leader" });
    expect([term.end?.reason, term.value]).toEqual(["expired", election.candidate]);
  });

  it("is refused at once when the term is over, and bounded by attemptMs", async () => {
    const { clock, election, backend } = here;
    const term = await election.campaign();
    backend.onProclaim = silence;
    const hanging = outcome(term.proclaim("there"));
    await clock.advance(2_500);
    expect(hanging.error).toMatchObject({
      code: "timeout",
      message: expect.stringMatching("^proclaiming was"),
    });
    await term.resign();
    await expect(term.proclaim("there")).rejects.toMatchObject({ code: "not-leader" });
    expect(backend.count("proclaim")).toBe(1);
  });
});

describe("a term's guard", () => {
  it("looks at the clock, then asks the fence with the term's token", async () => {
    const { election } = here;
    const asked: unknown[] = [];
    const term = await election.campaign();
    const options = { signal: new AbortController().signal };
    const guard = term.guard({ check: (token, given) => void asked.push([token, given]) });
    await guard.check(options);
    await term.resign();
    await expect(guard.check()).rejects.toMatchObject({ code: "not-leader" });
    expect(asked).toEqual([[1n, options]]);
  });

  it("is the resource's own acts where it has them", async () => {
    const term = await here.election.campaign();
    const resource = { check: () => {}, bind: (bearer: unknown) => ({ bearer }) };
    expect(term.guard(resource).bearer).toBe(term);
  });
});
