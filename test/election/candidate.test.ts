/** One candidate, on a virtual clock: single attempts, work in a loop, one thing at a time, closing. */
import { describe, expect, it } from "vitest";
import { ConclaveError } from "../../src/kit/errors.js";
import { Election } from "../../src/election/election.js";
import { ATTEMPT_MS, openScene, outcome, RETRY_MS, silence, TTL_MS } from "../support/hand-backend.js";

const away = (): never => {
  throw new Error("away");
};
const forbidden = (): never => {
  throw new ConclaveError("forbidden", "not for you");
};

describe("tryCampaign()", () => {
  it("is one attempt: null if someone else leads or it is not ready, a rejection if it cannot be known", async () => {
    let ready = true;
    const { backend, election } = openScene({ ready: () => ready });
    const waits: boolean[] = [];
    backend.onCampaign = ({ wait }) => (waits.push(wait), null);
    expect(await election.tryCampaign()).toBeNull();
    ready = false;
    expect(await election.tryCampaign()).toBeNull();
    ready = true;
    backend.onCampaign = away;
    await expect(election.tryCampaign()).rejects.toThrow("away");
    expect([waits, backend.count("campaign")]).toEqual([[false], 2]);
    await election.close();
  });

  it("takes at most two attempts' time", async () => {
    const { clock, backend, election } = openScene();
    backend.onCampaign = silence;
    const attempt = outcome(election.tryCampaign());
    await clock.advance(2 * ATTEMPT_MS - 1);
    expect(attempt.settled).toBe(false);
    await clock.advance(1);
    expect(attempt.error).toMatchObject({
      code: "timeout",
      message: expect.stringMatching("^campaigning was"),
    });
    await Promise.all([election.close(), clock.advance(ATTEMPT_MS)]);
  });
});

describe("run()", () => {
  it("campaigns again after its work returns or fails: soon, and ever later if it fails", async () => {
    const { clock, backend, election, logged } = openScene();
    clock.draw = 1;
    let fails = false;
    const stop = new AbortController();
    const running = election.run(() => (fails ? away() : undefined), { signal: stop.signal });
    await clock.advance(0);
    expect(backend.calls).toEqual(["campaign", "release"]);
    await clock.advance(RETRY_MS - 1);
    expect(backend.count("campaign")).toBe(1);
    fails = true;
    await clock.advance(1);
    expect([backend.count("campaign"), logged.at(-1)]).toEqual([2, expect.stringMatching("working: away")]);
    await clock.advance(2 * RETRY_MS);
    expect(backend.count("campaign")).toBe(3);
    await clock.advance(4 * RETRY_MS - 1);
    expect(backend.count("campaign")).toBe(3);
    stop.abort();
    await running;
    expect(clock.timers).toBe(0);
    await election.close();
  });

  it("does not end for what is permanent: it tries again after half a ttl", async () => {
    const { clock, backend, election, logged } = openScene();
    clock.draw = 1;
    backend.onCampaign = forbidden;
    const stop = new AbortController();
    const running = outcome(election.run(() => {}, { signal: stop.signal }));
    await clock.advance(TTL_MS / 2 - 1);
    expect(backend.count("campaign")).toBe(1);
    await clock.advance(1);
    expect(backend.count("campaign")).toBe(2);
    expect([running.settled, logged[1]]).toEqual([false, 'error: election "e": campaigning: not for you']);
    stop.abort();
    await clock.advance(0);
    expect(running).toEqual({ settled: true, value: undefined });
    await election.close();
  });

  it("takes a function, and refuses anything else before it campaigns", async () => {
    const { backend, election } = openScene();
    // @ts-expect-error -- plain JavaScript can pass anything
    await expect(election.run({})).rejects.toMatchObject({ code: "invalid", message: /got object/ });
    expect(backend.calls).toEqual([]);
  });

  it("names what ended each term, and says when work outlives it", async () => {
    const { clock, election, logged } = openScene();
    const ends: string[] = [];
    election.on("ended", ({ end }) => ends.push(end.detail));
    const works: (() => Promise<void> | void)[] = [
      () => {},
      () => Promise.reject(new Error("broken")),
      silence,
    ];
    const stop = new AbortController();
    const running = outcome(election.run(() => works.shift()?.(), { signal: stop.signal }));
    await clock.advance(20_000);
    expect(ends).toEqual(["the work returned", "the work failed"]);
    stop.abort();
    await clock.advance(5_000 + TTL_MS);
    expect(ends.at(-1)).toBe("the candidate was stopped");
    expect(
      logged.some((line) => /error|warn/.test(line) && line.includes("is still running after its end")),
    ).toBe(true);
    expect(running.settled).toBe(true);
    await election.close();
  });
});

describe("one candidate", () => {
  it("is told what it is doing already", async () => {
    const { clock, backend, election } = openScene();
    backend.onCampaign = silence;
    const given = new AbortController();
    outcome(election.campaign({ signal: given.signal }));
    await expect(election.campaign()).rejects.toThrow("this candidate is campaigning already");
    given.abort();
    await clock.advance(0);
    backend.onCampaign = () => {};
    await election.campaign();
    await expect(election.tryCampaign()).rejects.toThrow("this candidate is leading already");
    await expect(election.run(() => {})).rejects.toMatchObject({ code: "state", retriable: false });
    await Promise.all([election.close(), clock.advance(ATTEMPT_MS)]);
  });

  it("that is closed refuses everything, ends its term as closed, and closes its backend only if told to", async () => {
    for (const closeBackend of [undefined, false, true]) {
      const { backend, election } = openScene({ closeBackend });
      const term = await election.campaign();
      await Promise.all([election.close(), election.close()]);
      expect(term.end).toEqual({ reason: "closed", detail: "the election was closed", drained: true });
      await expect(election.campaign()).rejects.toMatchObject({ code: "state", message: /open a new one/ });
      await expect(election.leader()).rejects.toMatchObject({ code: "state" });
      expect(backend.closed).toBe(closeBackend === true ? 1 : 0);
    }
  });

  it("has an id of its own, a checked name and value, and a backend that is one", () => {
    const { election, backend, clock } = openScene();
    expect(election.candidate).toMatch(/^c-[0-9a-f]+$/);
    const other = new Election({ name: "e", backend, clock, id: "c" });
    expect(other.candidate).not.toBe(election.candidate);
    const open = (over: object) => () => new Election({ name: "e", backend, ...over });
    expect(open({ name: "" })).toThrow(/name must not be empty/);
    expect(open({ value: 7 })).toThrow(/value must be a string/);
    expect(open({ id: "" })).toThrow(/id must not be empty/);
    expect(open({ backend: "etcd://user:secret@host" })).toThrow(/got string; for a URL use openElection/);
    expect(open({ backend: null })).toThrow(/got null/);
    expect(open({ backend: {} })).toThrow(/got object/);
    expect([other.name, other.backend, other.timing.ttlMs]).toEqual(["e", backend, 10_000]);
  });
});
