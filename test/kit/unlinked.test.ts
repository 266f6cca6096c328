/** Waiting links itself to a signal that lives longer than the wait: it unlinks itself, however the wait ends. */
import { getEventListeners } from "node:events";
import { beforeEach, describe, expect, it } from "vitest";
import { bounded, settlesWithin, sleep, untilAborted } from "../../src/kit/wait.js";
import { abortable } from "../../src/kit/driver.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";

let clock: VirtualClock;
let stop: AbortController;
const left = (): [listeners: number, timers: number] => [
  getEventListeners(stop.signal, "abort").length,
  clock.timers,
];

beforeEach(() => {
  clock = new VirtualClock();
  stop = new AbortController();
});

const WAITS: [string, (promise: Promise<unknown>) => Promise<unknown>][] = [
  ["untilAborted", (promise) => untilAborted(stop.signal, promise)],
  ["bounded", (promise) => bounded(clock, 1_000, stop.signal, "waiting", () => promise)],
  ["abortable", (promise) => abortable(stop.signal, () => promise)],
];

describe.each(WAITS)("%s", (_, wait) => {
  it("when what it waits for is there", async () => {
    expect(await wait(Promise.resolve(1))).toBe(1);
    expect(left()).toEqual([0, 0]);
  });

  it("when that has failed", async () => {
    await expect(wait(Promise.reject(new Error("no")))).rejects.toThrow("no");
    expect(left()).toEqual([0, 0]);
  });

  it("when it is aborted", async () => {
    const waiting = wait(new Promise(() => {}));
    await clock.advance(0);
    expect(left()[0]).toBeGreaterThan(0);
    stop.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
    expect(left()).toEqual([0, 0]);
  });
});

it("a sleep, at its end and by its signal", async () => {
  const slept = sleep(clock, 10, stop.signal);
  await clock.advance(10);
  await slept;
  expect(left()).toEqual([0, 0]);
  const woken = sleep(clock, 10, stop.signal);
  stop.abort();
  await woken;
  expect(left()).toEqual([0, 0]);
});

it("settlesWithin, in time and too late", async () => {
  expect(await settlesWithin(clock, 10, stop.signal, Promise.resolve())).toBe(true);
  expect(left()).toEqual([0, 0]);
  const late = settlesWithin(clock, 10, stop.signal, new Promise(() => {}));
  await clock.advance(10);
  expect(await late).toBe(false);
  expect(left()).toEqual([0, 0]);
});
