/** Waiting for a change: by a watch where there is one, by a timer underneath, until the caller gives up. */
import { beforeEach, describe, expect, it, test } from "vitest";
import { systemClock } from "../../src/kit/clock.js";
import { WatchOrTimer } from "../../src/record/watch-or-timer.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";
import { never } from "./one-record.js";

test("a watch that throws at the call costs latency, not the campaign", async () => {
  const store = {
    watch: (): Promise<void> => {
      throw new Error("no watches here");
    },
  };
  const wakeup = new WatchOrTimer(systemClock, store, "e");
  expect(await wakeup.wait(1, new AbortController().signal)).toBe("timer");
  expect(await wakeup.wait(1, new AbortController().signal)).toBe("timer");
  wakeup.close();
});

/** A watch in the hands of the test. */
class Watch {
  armed = 0;
  key: string | undefined;
  signal: AbortSignal | undefined;
  wake = (): void => {};
  end = (): void => {};

  watch(key: string, wake: () => void, { signal }: { signal: AbortSignal }): Promise<void> {
    this.armed++;
    this.key = key;
    this.wake = wake;
    this.signal = signal;
    return new Promise((resolve) => (this.end = resolve));
  }
}

describe("a wait", () => {
  let clock: VirtualClock;
  let store: Watch;
  let wakeup: WatchOrTimer;

  beforeEach(() => {
    clock = new VirtualClock();
    store = new Watch();
    wakeup = new WatchOrTimer(clock, store, "e");
  });

  /** What the wait ends with, if it has ended. */
  function waiting(ms: number, signal = never): { woken: string | undefined } {
    const state: { woken: string | undefined } = { woken: undefined };
    void wakeup.wait(ms, signal).then((woken) => (state.woken = woken));
    return state;
  }

  it("ends with its time, not before", async () => {
    const wait = waiting(100);
    await clock.advance(99);
    expect(wait.woken).toBeUndefined();
    await clock.advance(1);
    expect(wait.woken).toBe("timer");
  });

  it("ends with the watch of its key, and leaves no timer", async () => {
    const wait = waiting(100);
    expect(store.key).toBe("e");
    store.wake();
    await clock.advance(0);
    expect([wait.woken, clock.timers]).toEqual(["watch", 0]);
  });

  it("ends with the caller's signal, at once if it has aborted, and leaves no timer", async () => {
    const controller = new AbortController();
    const wait = waiting(100, controller.signal);
    controller.abort();
    await clock.advance(0);
    expect([wait.woken, clock.timers]).toEqual(["aborted", 0]);
    store.wake(); // even with news
    const late = waiting(100, controller.signal);
    await clock.advance(0);
    expect([late.woken, clock.timers]).toEqual(["aborted", 0]);
  });

  it("is not needed if the watch told something since the last one, and that counts once", async () => {
    await Promise.all([wakeup.wait(0, never), clock.advance(0)]);
    store.wake();
    store.wake();
    const [second, third] = [waiting(100), waiting(100)];
    await clock.advance(0);
    expect([second.woken, third.woken]).toEqual(["watch", undefined]);
  });

  it("that a wake has ended is not the reason for another one to end", async () => {
    const first = waiting(100);
    store.wake();
    await clock.advance(0);
    const second = waiting(100);
    await clock.advance(50);
    expect([first.woken, second.woken]).toEqual(["watch", undefined]);
  });

  it("arms the watch once, and again after it has ended, at most once a second", async () => {
    waiting(10);
    await clock.advance(10);
    waiting(10);
    expect(store.armed).toBe(1);
    store.end();
    await clock.advance(980);
    waiting(10);
    await clock.advance(9);
    waiting(10);
    expect(store.armed).toBe(1);
    await clock.advance(1);
    waiting(10);
    expect(store.armed).toBe(2);
  });

  it("closes the watch with the wakeup, and arms none afterwards", async () => {
    waiting(10);
    expect(store.signal?.aborted).toBe(false);
    wakeup.close();
    expect(store.signal?.aborted).toBe(true);
    store.end();
    await clock.advance(2_000);
    waiting(10);
    expect(store.armed).toBe(1);
  });

  it("works by the timer alone where the store has no watch", async () => {
    wakeup = new WatchOrTimer(clock, {}, "e");
    const wait = waiting(100);
    await clock.advance(100);
    expect(wait.woken).toBe("timer");
  });
});
