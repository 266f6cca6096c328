/** Calls that are bounded: by time, by a signal, and without leaving anything behind. */
import { describe, expect, it } from "vitest";
import type { Clock } from "../../src/seam/clock.js";
import { StopSource } from "../../src/kit/stop.js";
import { limited } from "../../src/kit/wait.js";
import type { Stop } from "../../src/kit/stop.js";

/** Time that passes when it is told to. */
class HandClock implements Clock {
  #now = 0;
  readonly timers = new Map<number, { dueAt: number; callback: () => void }>();
  #last = 0;

  now(): number {
    return this.#now;
  }
  wall(): number {
    return this.#now;
  }
  boot(): number {
    return this.#now;
  }
  random(): number {
    return 0.5;
  }
  uniqueId(): string {
    return "id";
  }
  after(delayMs: number, callback: () => void): { cancel(): void } {
    const id = ++this.#last;
    this.timers.set(id, { dueAt: this.#now + delayMs, callback });
    return { cancel: () => void this.timers.delete(id) };
  }
  pass(ms: number): void {
    this.#now += ms;
    for (const [id, { dueAt, callback }] of [...this.timers]) {
      if (dueAt > this.#now) continue;
      this.timers.delete(id);
      callback();
    }
  }
}

const silence = (): Promise<never> => new Promise(() => {});

describe("a limited call", () => {
  it("gives back what the call gives, or throws, at once or later, and leaves no timer", async () => {
    const clock = new HandClock();
    const never = new StopSource();
    const call = (what: () => Promise<unknown>): Promise<unknown> => limited(clock, 100, never, "x", what);
    expect(await call(async () => 1)).toBe(1);
    await expect(call(() => Promise.reject(new Error("later")))).rejects.toThrow("later");
    const atOnce = (): Promise<unknown> => {
      throw new Error("at once");
    };
    await expect(call(atOnce)).rejects.toThrow("at once");
    expect(clock.timers.size).toBe(0);
  });

  it("ends at its limit, however long the call takes, and tells it to stop", async () => {
    const clock = new HandClock();
    let told: Stop | undefined;
    const call = limited(clock, 100, new StopSource(), "asking", (stop) => {
      told = stop;
      return silence();
    });
    clock.pass(99);
    expect(told?.aborted).toBe(false);
    clock.pass(1);
    expect(told?.aborted).toBe(true);
    await expect(call).rejects.toMatchObject({ code: "timeout", message: expect.stringContaining("100 ms") });
    expect(clock.timers.size).toBe(0);
  });

  it("gives an answer that may lie unread a moment, if it was we who were away", async () => {
    const clock = new HandClock();
    let answer: ((value: string) => void) | undefined;
    const call = limited(
      clock,
      100,
      new StopSource(),
      "asking",
      () => new Promise<string>((r) => (answer = r)),
    );
    clock.pass(5_000);
    answer?.("here");
    expect(await call).toBe("here");
    expect(clock.timers.size).toBe(0);
    const lost = limited(clock, 100, new StopSource(), "asking", silence);
    clock.pass(5_000);
    clock.pass(10);
    await expect(lost).rejects.toMatchObject({ code: "timeout" });
    expect(clock.timers.size).toBe(0);
  });

  it("ends with the signal, for its reason; what comes later is nobody's", async () => {
    const clock = new HandClock();
    const signal = new StopSource();
    let fail: ((error: Error) => void) | undefined;
    const call = limited(clock, 100, signal, "asking", () => new Promise((_, reject) => (fail = reject)));
    const why = new Error("enough");
    signal.stop(why);
    await expect(call).rejects.toBe(why);
    fail?.(new Error("late")); // would be an unhandled rejection, and a red test
    let called = false;
    const next = limited(clock, 100, signal, "asking", async () => (called = true));
    await expect(next).rejects.toBe(why);
    expect([called, clock.timers.size]).toEqual([false, 0]);
  });
});
