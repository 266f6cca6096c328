/** How long the law waits: pauses between attempts, and between renewals. */
import { beforeEach, describe, expect, it } from "vitest";
import { Backoff } from "../../src/kit/backoff.js";
import { RenewalLoop } from "../../src/kit/renewal.js";
import { SetClock } from "../support/set-clock.js";

let clock: SetClock;

beforeEach(() => {
  clock = new SetClock();
});

describe("a backoff", () => {
  it("doubles with every failure up to the longest, and begins anew after a success", () => {
    clock.draw = 1;
    const backoff = new Backoff(clock, 10, 100);
    expect(Array.from({ length: 6 }, () => backoff.next())).toEqual([10, 20, 40, 80, 100, 100]);
    backoff.reset();
    expect(backoff.next()).toBe(10);
  });

  it("is a random part of that, at least half", () => {
    const backoff = new Backoff(clock, 10, 100);
    expect(backoff.next()).toBe(5);
    clock.draw = 0.5;
    expect(backoff.next()).toBe(15);
    expect(backoff.permanent()).toBe(75);
  });

  it("goes to the longest at once for what is permanent", () => {
    clock.draw = 1;
    expect(new Backoff(clock, 10, 100).permanent()).toBe(100);
  });

  it("stays finite after any number of failures", () => {
    clock.draw = 1;
    const backoff = new Backoff(clock, 1, 2 ** 21);
    for (let i = 0; i < 5_000; i++) backoff.next();
    expect(backoff.next()).toBe(2 ** 20);
  });
});

describe("the renewal loop", () => {
  const RENEW_MS = 1_600;
  const ATTEMPT_MS = 500;

  interface Scene {
    /** When the store was asked. */
    readonly asked: number[];
    readonly told: string[];
    loop: RenewalLoop<string>;
    leftMs: number;
    answer: () => Promise<string>;
    /** The instant from which the next one is due; `undefined` = nothing left to renew. */
    dueFrom: () => number | undefined;
    goOn: boolean;
    signal: AbortSignal | undefined;
  }

  function scene(): Scene {
    const asked: number[] = [];
    const told: string[] = [];
    const state: Omit<Scene, "loop"> = {
      asked,
      told,
      leftMs: 10_000,
      answer: async () => "yes",
      dueFrom: () => clock.now(),
      goOn: true,
      signal: undefined,
    };
    const loop = new RenewalLoop<string>({
      clock,
      renewMs: RENEW_MS,
      attemptMs: ATTEMPT_MS,
      leftMs: () => state.leftMs,
      ask: (signal) => {
        asked.push(clock.now());
        state.signal = signal;
        return state.answer();
      },
      answered: (answer, latencyMs) => {
        told.push(`${answer} after ${latencyMs}`);
        return state.dueFrom();
      },
      failed: (error, latencyMs) => {
        told.push(`${error instanceof Error ? error.message : "?"} after ${latencyMs}`);
        return state.goOn;
      },
    });
    return Object.assign(state, { loop });
  }

  it("asks nine to ten tenths of a pause after the last question", async () => {
    const it = scene();
    it.loop.start(0);
    await clock.advance(0.9 * RENEW_MS - 1);
    expect(it.asked).toEqual([]);
    await clock.advance(1);
    clock.draw = 1;
    await clock.advance(RENEW_MS);
    expect(it.asked).toEqual([0.9 * RENEW_MS, 0.9 * RENEW_MS * 2]);
    await clock.advance(RENEW_MS);
    expect(it.asked.at(-1)).toBe(0.9 * RENEW_MS * 2 + RENEW_MS);
    it.loop.stop();
    expect(clock.timers).toBe(0);
  });

  it("asks at once if the pause is over already", async () => {
    const it = scene();
    await clock.advance(5_000);
    it.loop.start(0);
    await clock.advance(0);
    expect(it.asked).toEqual([5_000]);
    it.loop.stop();
  });

  it("does not ask in a tight loop for answers to old questions", async () => {
    const it = scene();
    it.dueFrom = () => -1_000_000;
    it.loop.start(0);
    clock.draw = 1;
    await clock.advance(0.9 * RENEW_MS);
    await clock.advance(RENEW_MS / 4 - 1);
    expect(it.asked).toHaveLength(1);
    await clock.advance(1);
    expect(it.asked).toHaveLength(2);
    it.loop.stop();
  });

  it("asks again soon after a failure, later with every further one, and tells how long each took", async () => {
    clock.draw = 0.5; // the middle of the jitter
    const it = scene();
    it.answer = () => Promise.reject(new Error("away"));
    it.loop.start(0);
    await clock.advance(10_000);
    it.loop.stop();
    const pauses = it.asked.slice(1).map((at, i) => at - it.asked[i]!);
    expect(pauses.slice(0, 4)).toEqual([RENEW_MS / 8, RENEW_MS / 4, RENEW_MS / 2, RENEW_MS / 2]);
    expect(it.told[0]).toBe("away after 0");
  });

  it("jitters the retries by a quarter either way", async () => {
    const it = scene();
    it.answer = () => Promise.reject(new Error("away"));
    it.loop.start(0);
    await clock.advance(0.9 * RENEW_MS);
    await clock.advance(0.75 * (RENEW_MS / 8) - 1);
    expect(it.asked).toHaveLength(1);
    await clock.advance(1);
    expect(it.asked).toHaveLength(2);
    it.loop.stop();
  });

  it("begins anew after a success", async () => {
    clock.draw = 0.5;
    const it = scene();
    it.answer = () => Promise.reject(new Error("away"));
    it.loop.start(0);
    await clock.advance(RENEW_MS + RENEW_MS / 8 + RENEW_MS / 4);
    it.answer = async () => "yes";
    await clock.advance(RENEW_MS / 2);
    expect(it.told.at(-1)).toBe("yes after 0");
    const at = it.asked.at(-1)!;
    it.answer = () => Promise.reject(new Error("away"));
    await clock.advance(2 * RENEW_MS);
    it.loop.stop();
    const after = it.asked.filter((each) => each > at);
    expect(after[1]! - after[0]!).toBe(RENEW_MS / 8);
  });

  it.each([
    [10_000, ATTEMPT_MS],
    [600, 300],
    [1, 1],
  ])("cuts an attempt so that another fits: %d ms left", async (leftMs, limitMs) => {
    const it = scene();
    it.leftMs = leftMs;
    it.answer = () => new Promise(() => {});
    it.loop.start(0);
    await clock.advance(0.9 * RENEW_MS + limitMs - 0.5);
    expect(it.told).toEqual([]);
    await clock.advance(0.5);
    expect(it.told).toEqual([expect.stringMatching(`^renewing was not answered .* after ${limitMs}$`)]);
    expect(it.signal?.aborted).toBe(true);
    it.loop.stop();
  });

  it("does not ask when nothing is left, nor after it was told that nothing is", async () => {
    const gone = scene();
    gone.leftMs = 0;
    gone.loop.start(0);
    const answered = scene();
    answered.dueFrom = () => undefined;
    answered.loop.start(0);
    const failed = scene();
    failed.answer = () => Promise.reject(new Error("away"));
    failed.goOn = false;
    failed.loop.start(0);
    await clock.advance(10 * RENEW_MS);
    expect([gone.asked.length, answered.asked.length, failed.asked.length]).toEqual([0, 1, 1]);
    expect(clock.timers).toBe(0);
  });

  it("asks nothing after it was stopped, and gives up what is under way without a word", async () => {
    const it = scene();
    it.answer = () => new Promise(() => {});
    it.loop.start(0);
    await clock.advance(RENEW_MS);
    it.loop.stop();
    await clock.advance(10 * RENEW_MS);
    expect([it.asked.length, it.told, it.signal?.aborted]).toEqual([1, [], true]);
    it.loop.start(0);
    expect(clock.timers).toBe(0);
  });
});
