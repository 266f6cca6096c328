/** A term from its begin to its end, on a virtual clock: what it shows, how it is kept, how it ends. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ElectionOptions } from "../../src/api/options.js";
import type { Term } from "../../src/api/term.js";
import {
  DRAIN_MS,
  MARGIN_MS,
  openScene,
  outcome,
  RENEW_MS,
  silence,
  TTL_MS,
} from "../support/hand-backend.js";
import type { Scene } from "../support/hand-backend.js";

const HELD_MS = TTL_MS - MARGIN_MS;
const away = (): never => {
  throw new Error("away");
};

let here: Scene;

function scene(options: Partial<ElectionOptions> = {}): Scene {
  here = openScene(options);
  return here;
}

beforeEach(() => void scene());

afterEach(async () => {
  here.backend.onRelease = () => {};
  const closing = here.election.close();
  await here.clock.advance(TTL_MS);
  await closing;
  expect(here.clock.timers).toBe(0);
});

describe("a term", () => {
  it("shows whose it is, since when, and how long it has lasted and will", async () => {
    const { clock, election, backend } = scene({ value: "here" });
    await clock.advance(70);
    const term = await election.campaign();
    expect(term).toMatchObject({ election: "e", candidate: election.candidate, token: 1n, value: "here" });
    expect(term).toMatchObject({ since: clock.wall(), lastedMs: 0, held: true, remainingMs: HELD_MS });
    expect([term.end, term.signal.aborted, election.term, election.leading]).toEqual([
      undefined,
      false,
      term,
      true,
    ]);
    expect(backend.candidacies).toMatchObject([
      {
        election: "e",
        candidate: election.candidate,
        value: "here",
        ttlMs: TTL_MS,
        retryMs: 2_000,
        attemptMs: 2_500,
      },
    ]);
    await clock.advance(100);
    expect([term.lastedMs, term.remainingMs]).toEqual([100, HELD_MS - 100]);
    await term.resign();
    await clock.advance(100);
    expect([term.lastedMs, term.remainingMs, term.held]).toEqual([100, 0, false]);
    expect([election.term, election.leading]).toEqual([undefined, false]);
  });

  it("is kept by renewals, each counted from its question", async () => {
    const { clock, election, backend } = here;
    const term = await election.campaign();
    backend.onRenew = () => clock.stall(40);
    await clock.advance(0.9 * RENEW_MS + 40);
    expect(backend.count("renew")).toBe(1);
    expect(term.remainingMs).toBe(HELD_MS - 40);
    await clock.advance(10 * TTL_MS);
    expect(term.held).toBe(true);
  });

  it("ends at its deadline if no renewal is answered, to the millisecond, and is not released", async () => {
    const { clock, election, backend, logged } = here;
    backend.onRenew = silence;
    const term = await election.campaign();
    const ended = outcome(term.ended);
    await clock.advance(HELD_MS - 1);
    expect([term.held, ended.settled]).toEqual([true, false]);
    await clock.advance(1);
    expect(term.held).toBe(false);
    expect(ended.value).toEqual({
      reason: "expired",
      detail: "the deadline passed without a renewal",
      drained: false,
    });
    expect(term.end).toEqual(ended.value);
    expect(backend.count("release")).toBe(0);
    expect(logged.at(-1)).toMatch(/^warn: election "e": term 1 expired/);
  });

  it("that is asked after a stall ends by the question itself, and stays ended", async () => {
    const { clock, election } = here;
    const term = await election.campaign();
    clock.stall(HELD_MS);
    expect([term.held, term.end?.reason, term.signal.aborted]).toEqual([false, "expired", true]);
    await clock.advance(0);
    expect(term.held).toBe(false);
  });

  it("ends when a renewal says that it is lost", async () => {
    const { clock, election, backend, logged } = here;
    backend.onRenew = () => "lost";
    const term = await election.campaign();
    await clock.advance(RENEW_MS);
    expect(term.end).toEqual({
      reason: "revoked",
      detail: expect.stringMatching("gone or held by someone else"),
      drained: false,
    });
    expect(backend.calls).toEqual(["campaign", "renew"]);
    expect(logged.at(-1)).toMatch(/^warn: .* term 1 revoked/);
  });

  it("ends when the store says by itself that it is gone", async () => {
    const { clock, election, backend } = here;
    const gone = new AbortController();
    backend.granted = { revoked: gone.signal };
    const term = await election.campaign();
    gone.abort();
    expect(term.end).toEqual({
      reason: "revoked",
      detail: "the store says that the lease is gone",
      drained: false,
    });
    await clock.advance(TTL_MS);
    expect(backend.calls).toEqual(["campaign"]);
  });

  it("tells why its signal aborted, also to those who ask later", async () => {
    const { election } = here;
    const term = await election.campaign();
    await term.resign();
    expect(term.signal.reason).toMatchObject({ code: "not-leader", token: 1n });
    expect(term.signal.reason).toMatchObject({
      message: 'term 1 of election "e" is over: resign() was called',
    });
    expect(() => term.assertHeld()).toThrow(/is over: resign\(\) was called; stop its work/);
    const early = await election.campaign();
    const { signal } = early;
    early.assertHeld();
    await early.resign();
    expect(signal.reason).toMatchObject({ code: "not-leader", token: 2n });
  });
});

describe("giving a term up", () => {
  it("aborts, then releases, then reports; once", async () => {
    const { clock, election, backend, logged } = here;
    const order: string[] = [];
    election.on("ended", ({ term, end }) => order.push(`ended ${term.token} ${end.reason} ${end.drained}`));
    const term = await election.campaign();
    term.signal.addEventListener("abort", () => order.push(`abort, held ${term.held}`));
    backend.onRelease = () => void order.push(`release, held ${term.held}`);
    await Promise.all([term.resign(), term.resign(), election.resign()]);
    await clock.advance(0);
    expect(order).toEqual(["abort, held true", "release, held false", "ended 1 resigned true"]);
    expect(term.end).toEqual({ reason: "resigned", detail: "resign() was called", drained: true });
    expect(logged.at(-1)).toBe('info: election "e": term 1 resigned: resign() was called');
    expect(election.term).toBeUndefined();
  });

  it("is what `await using` does", async () => {
    const { election, backend } = here;
    let kept: Term | undefined;
    {
      await using term = await election.campaign();
      kept = term;
    }
    expect([kept.end?.reason, backend.count("release")]).toEqual(["resigned", 1]);
  });

  it("tries the release twice, then lets the lease run out and says so", async () => {
    const { clock, election, backend, logged } = here;
    const errors: unknown[] = [];
    election.on("error", ({ error }) => errors.push(error));
    backend.onRelease = away;
    const term = await election.campaign();
    const resigned = outcome(term.resign());
    await clock.advance(624);
    expect([backend.count("release"), resigned.settled]).toEqual([1, false]);
    await clock.advance(1);
    expect([backend.count("release"), resigned.settled]).toEqual([2, true]);
    expect(errors).toEqual([expect.objectContaining({ message: "away" })]);
    expect(logged.filter((line) => line.startsWith("warn"))).toHaveLength(2);
  });

  it("does not wait for a release longer than for two attempts", async () => {
    const { clock, election, backend } = here;
    backend.onRelease = silence;
    const resigned = outcome((await election.campaign()).resign());
    await clock.advance(2 * 2_500 + 624);
    expect(resigned.settled).toBe(false);
    await clock.advance(1);
    expect(resigned.settled).toBe(true);
  });

  it("because it has lasted maxTermMs waits for the word of its owner", async () => {
    const { clock, election, backend } = scene({ maxTermMs: 4_000 });
    const term = await election.campaign();
    await clock.advance(3_999);
    expect(term.signal.aborted).toBe(false);
    await clock.advance(1);
    expect([term.signal.aborted, term.held, backend.count("release")]).toEqual([true, true, 0]);
    await term.resign();
    expect(term.end).toEqual({
      reason: "resigned",
      detail: "the term reached its limit (maxTermMs)",
      drained: true,
    });
  });

  it("whose owner does not say so lets it run out; no renewal counts any more", async () => {
    const { clock, election, backend, logged } = scene({ maxTermMs: 4_000 });
    const term = await election.campaign();
    await clock.advance(4_000 + DRAIN_MS - 1);
    const before = backend.count("renew");
    expect(term.held).toBe(true);
    await clock.advance(1);
    expect(logged.at(-1)).toMatch(`did not stop within ${DRAIN_MS} ms`);
    const left = term.remainingMs;
    expect(left).toBeGreaterThan(0);
    await clock.advance(left - 1);
    expect([term.held, backend.count("release")]).toEqual([true, 0]);
    await clock.advance(1);
    expect(backend.count("renew")).toBe(before);
    expect(term.end).toMatchObject({ reason: "resigned", drained: false });
    expect(backend.count("release")).toBe(1);
  });

  it("is renewed while its work drains", async () => {
    const { clock, election, backend } = scene({ maxTermMs: 1_000 });
    const term = await election.campaign();
    await clock.advance(RENEW_MS);
    expect([term.signal.aborted, backend.count("renew")]).toEqual([true, 1]);
    await term.resign();
  });

  it("that is lost while its work drains is lost, not resigned", async () => {
    const { clock, election, backend } = scene({ maxTermMs: 1_000 });
    backend.onRenew = () => "lost";
    const term = await election.campaign();
    await clock.advance(RENEW_MS);
    expect(term.end).toMatchObject({ reason: "revoked", drained: false });
    await term.resign();
    expect(backend.count("release")).toBe(0);
  });
});

describe("renewals that fail", () => {
  it("are told: jeopardy once, safe once, every attempt with its time", async () => {
    const { clock, election, backend, logged } = here;
    const told: unknown[] = [];
    election.on("jeopardy", ({ term, error }) =>
      told.push(["jeopardy", term.token, (error as Error).message]),
    );
    election.on("safe", ({ term }) => told.push(["safe", term.token]));
    election.on("renewal", ({ term, ok, latencyMs, remainingMs }) =>
      told.push(["renewal", term.token, ok, latencyMs, Math.round(remainingMs)]),
    );
    backend.onRenew = () => {
      clock.stall(10);
      if (backend.count("renew") < 3) away();
    };
    await election.campaign();
    await clock.advance(5_000);
    const left = (at: number): number => Math.round(HELD_MS - at);
    const first = 0.9 * RENEW_MS + 10;
    const second = first + 0.75 * (RENEW_MS / 8) + 10;
    expect(told.slice(0, 5)).toEqual([
      ["renewal", 1n, false, 10, left(first)],
      ["jeopardy", 1n, "away"],
      ["renewal", 1n, false, 10, left(second)],
      ["renewal", 1n, true, 10, left(second + 0.75 * (RENEW_MS / 4) + 10)],
      ["safe", 1n],
    ]);
    expect(logged.filter((line) => line.startsWith("warn"))).toEqual([
      expect.stringMatching(`renewing term 1 failed, ${left(first)} ms left: away`),
      expect.stringMatching(`renewing term 1 failed, ${left(second)} ms left: away`),
    ]);
  });

  it("put a term in jeopardy anew after it was safe", async () => {
    const { clock, election, backend } = here;
    let told = 0;
    election.on("jeopardy", () => void told++);
    backend.onRenew = () => (backend.count("renew") % 2 === 1 ? away() : undefined);
    await election.campaign();
    await clock.advance(3 * RENEW_MS);
    expect(told).toBeGreaterThan(1);
  });
});
