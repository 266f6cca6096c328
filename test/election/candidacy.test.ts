/** One candidate's attempts, on a virtual clock: when it tries again, what it gives back, what closing waits for. */
import { describe, expect, it } from "vitest";
import { ConclaveError } from "../../src/kit/errors.js";
import { deferred } from "../../src/kit/wait.js";
import { ATTEMPT_MS, openScene, outcome, RETRY_MS, silence, TTL_MS } from "../support/hand-backend.js";

const away = (): never => {
  throw new Error("away");
};
const forbidden = (): never => {
  throw new ConclaveError("forbidden", "not for you");
};

describe("campaign()", () => {
  it("waits faults out, ever longer, and says each of them", async () => {
    const { clock, backend, election, logged } = openScene();
    clock.draw = 1;
    const errors: unknown[] = [];
    election.on("error", ({ error }) => errors.push(error));
    backend.onCampaign = away;
    const campaign = outcome(election.campaign());
    await clock.advance(RETRY_MS / 8 - 1);
    expect(backend.count("campaign")).toBe(1);
    await clock.advance(1);
    expect(backend.count("campaign")).toBe(2);
    await clock.advance(RETRY_MS / 4);
    expect(backend.count("campaign")).toBe(3);
    expect(errors).toHaveLength(3);
    expect(logged.at(-1)).toBe('warn: election "e": campaigning: away');
    backend.onCampaign = () => {};
    await clock.advance(RETRY_MS / 2);
    expect(campaign.value?.held).toBe(true);
    await election.close();
    expect(clock.timers).toBe(0);
  });

  it("pauses at most half a ttl", async () => {
    const { clock, backend, election } = openScene();
    clock.draw = 1;
    backend.onCampaign = away;
    outcome(election.campaign());
    await clock.advance(60_000);
    const before = backend.count("campaign");
    await clock.advance(TTL_MS / 2);
    expect(backend.count("campaign")).toBe(before + 1);
    await election.close();
  });

  it("rejects at once with what is permanent, and the candidate may campaign again", async () => {
    const { backend, election } = openScene();
    backend.onCampaign = forbidden;
    await expect(election.campaign()).rejects.toMatchObject({ code: "forbidden" });
    backend.onCampaign = () => {};
    expect((await election.campaign()).held).toBe(true);
    await election.close();
  });

  it("says how long it waited, and with what guarantees", async () => {
    const { clock, backend, election, logged } = openScene();
    const told: unknown[] = [];
    election.on("elected", ({ term, waitedMs, guarantees }) => told.push([term.token, waitedMs, guarantees]));
    backend.onCampaign = () => clock.advance(70);
    await election.campaign();
    await clock.advance(0);
    expect(told).toEqual([[1n, 70, backend.guarantees]]);
    expect(logged).toEqual([
      `info: election "e": campaigning on ${backend.name}`,
      `info: election "e": ${election.candidate} leads with token 1`,
    ]);
    await election.close();
  });

  it("waits until the candidate is ready, and asks again after retryMs", async () => {
    let ready = false;
    let asked = 0;
    const scene = openScene({ ready: () => (asked++, ready) });
    const campaign = outcome(scene.election.campaign());
    await scene.clock.advance(RETRY_MS - 1);
    expect(asked).toBe(1);
    ready = true;
    await scene.clock.advance(1);
    expect([asked, campaign.value?.held]).toEqual([2, true]);
    await scene.election.close();
  });

  it("is given up with its signal while ready() hangs, while it waits, and while it pauses", async () => {
    for (const hang of ["ready", "campaign", "pause"]) {
      const scene = openScene(hang === "ready" ? { ready: silence } : {});
      if (hang === "campaign") scene.backend.onCampaign = silence;
      if (hang === "pause") scene.backend.onCampaign = away;
      const given = new AbortController();
      const campaign = outcome(scene.election.campaign({ signal: given.signal }));
      await scene.clock.advance(1);
      given.abort(new Error("given up"));
      await scene.clock.advance(0);
      expect(campaign.error).toMatchObject({ message: "given up" });
      await Promise.all([scene.election.close(), scene.clock.advance(ATTEMPT_MS)]);
      expect(scene.clock.timers).toBe(0);
    }
  });

  it("gives back what an aborted campaign still wins; close() waits for that", async () => {
    const { clock, backend, election } = openScene();
    const won = deferred<void>();
    backend.onCampaign = () => won.promise;
    const given = new AbortController();
    const campaign = outcome(election.campaign({ signal: given.signal }));
    await clock.advance(1);
    given.abort(new Error("given up"));
    await clock.advance(1);
    const closing = outcome(election.close());
    await clock.advance(1);
    expect([campaign.settled, closing.settled]).toEqual([true, false]);
    won.resolve();
    await clock.advance(1);
    expect([backend.calls, closing.settled]).toEqual([["campaign", "release"], true]);
  });

  it("waits for the withdrawal no longer than for one attempt", async () => {
    const { clock, backend, election } = openScene();
    backend.onCampaign = silence;
    outcome(election.campaign());
    await clock.advance(1);
    const closing = outcome(election.close());
    await clock.advance(ATTEMPT_MS - 1);
    expect(closing.settled).toBe(false);
    await clock.advance(1);
    expect(closing.settled).toBe(true);
  });
});

describe("a grant", () => {
  it("that came too late is confirmed by a renewal, from whose question the term counts", async () => {
    const { clock, backend, election } = openScene();
    backend.onCampaign = () => clock.stall(TTL_MS);
    const term = await election.campaign();
    expect(backend.calls).toEqual(["campaign", "renew"]);
    expect(term.remainingMs).toBe(8_500);
    await election.close();
  });

  it("that is lost by then is no term, and the campaign goes on", async () => {
    const { clock, backend, election } = openScene();
    backend.onCampaign = () => (backend.count("campaign") === 1 ? clock.stall(TTL_MS) : undefined);
    backend.onRenew = () => "lost";
    const term = await election.campaign();
    expect([term.token, backend.calls.slice(0, 3)]).toEqual([2n, ["campaign", "renew", "campaign"]]);
    await election.close();
  });

  it("whose confirmation is too late as well, or fails, is given back", async () => {
    for (const confirm of ["late", "fails"]) {
      const { clock, backend, election } = openScene();
      const errors: unknown[] = [];
      election.on("error", ({ error }) => errors.push(error));
      backend.onCampaign = () => (backend.count("campaign") === 1 ? clock.stall(TTL_MS) : undefined);
      backend.onRenew = () => (confirm === "late" ? clock.stall(TTL_MS) : away());
      const campaign = outcome(election.campaign());
      await new Promise((resolve) => setImmediate(resolve)); // the stalls are over: time may be moved
      await clock.advance(RETRY_MS / 8);
      expect(backend.calls.slice(0, 4)).toEqual(["campaign", "renew", "release", "campaign"]);
      expect(errors).toMatchObject([confirm === "late" ? { code: "timeout" } : { message: "away" }]);
      backend.onRenew = () => {};
      expect(campaign.value?.token).toBe(2n);
      await election.close();
    }
  });

  it("that cannot be released is reported, and expires by itself", async () => {
    const { clock, backend, election, logged } = openScene();
    backend.onRelease = away;
    backend.onCampaign = () => (backend.count("campaign") === 1 ? clock.stall(TTL_MS) : undefined);
    backend.onRenew = away;
    outcome(election.campaign());
    await clock.advance(RETRY_MS / 8);
    expect(logged[1]).toBe('warn: election "e": releasing token 1 failed: away; its lease expires by itself');
    backend.onRelease = () => {};
    await election.close();
  });

  it("of a longer lease than was asked for keeps the margin's share", async () => {
    const { backend, election } = openScene();
    backend.granted = { ttlMs: 2 * TTL_MS };
    const term = await election.campaign();
    expect(term.remainingMs).toBe(2 * TTL_MS * 0.85);
    await election.close();
    const shorter = openScene();
    shorter.backend.granted = { ttlMs: TTL_MS / 2 };
    expect((await shorter.election.campaign()).remainingMs).toBe(TTL_MS / 2 - 1_500);
    await shorter.election.close();
  });

  it("is not opened after the caller has given up: it is given back, for the caller's reason", async () => {
    const { clock, backend, election } = openScene();
    const given = new AbortController();
    backend.onCampaign = () => clock.stall(TTL_MS);
    backend.onRenew = () => given.abort(new Error("given up"));
    await expect(election.campaign({ signal: given.signal })).rejects.toThrow("given up");
    await clock.advance(0);
    expect(backend.calls).toEqual(["campaign", "renew", "release"]);
    expect(election.term).toBeUndefined();
    await election.close();
  });
});
