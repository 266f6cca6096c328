/** Waiting, bounded and abortable, on a virtual clock: what ends it, what it leaves behind. */
import { beforeEach, describe, expect, it } from "vitest";
import { StopSource } from "../../src/kit/stop.js";
import {
  bounded,
  deferred,
  limited,
  onAbort,
  settlesWithin,
  sharedController,
  sleep,
  throwIfStopped,
  untilAborted,
} from "../../src/kit/wait.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";

let clock: VirtualClock;
let halt: StopSource;

beforeEach(() => {
  clock = new VirtualClock();
  halt = new StopSource();
});

/** What a promise has become, if it has settled. */
function outcome<T>(promise: Promise<T>): { value?: T; error?: unknown; settled: boolean } {
  const state: { value?: T; error?: unknown; settled: boolean } = { settled: false };
  promise.then(
    (value) => Object.assign(state, { value, settled: true }),
    (error: unknown) => Object.assign(state, { error, settled: true }),
  );
  return state;
}

describe("a listener to a signal", () => {
  it("is called once when it aborts, at once if it has, and not after it was unlinked", () => {
    const controller = new AbortController();
    const told: string[] = [];
    onAbort(controller.signal, () => told.push("a"));
    const unlink = onAbort(controller.signal, () => told.push("b"));
    unlink();
    controller.abort();
    controller.abort();
    onAbort(controller.signal, () => told.push("c"))();
    expect(told).toEqual(["a", "c"]);
  });

  it("throwIfStopped throws the reason, and nothing before", () => {
    throwIfStopped(halt);
    halt.stop(new Error("why"));
    expect(() => throwIfStopped(halt)).toThrow("why");
  });

  it("may be one of many, without a warning, also where signals are not Node's", () => {
    const { AbortController: own } = globalThis;
    expect(sharedController().signal).toBeInstanceOf(AbortSignal);
    class Plain {
      readonly signal = { aborted: false };
    }
    try {
      Object.assign(globalThis, { AbortController: Plain });
      expect(sharedController().signal.aborted).toBe(false);
    } finally {
      Object.assign(globalThis, { AbortController: own });
    }
  });
});

describe("sleeping", () => {
  it("ends with its time, early with its stop, at once if that has come, and leaves no timer", async () => {
    const long = outcome(sleep(clock, 100, halt));
    await clock.advance(99);
    expect(long.settled).toBe(false);
    await clock.advance(1);
    expect(long.settled).toBe(true);
    const cut = outcome(sleep(clock, 100, halt));
    halt.stop();
    const never = outcome(sleep(clock, 100, halt));
    await clock.advance(0);
    expect([cut.settled, never.settled, clock.timers]).toEqual([true, true, 0]);
  });
});

describe("settling within a limit", () => {
  it("says whether it did, and leaves no timer", async () => {
    const { promise, resolve } = deferred<void>();
    const inTime = outcome(settlesWithin(clock, 100, halt, promise));
    await clock.advance(99);
    resolve();
    await clock.advance(0);
    expect([inTime.value, clock.timers]).toEqual([true, 0]);
    const late = outcome(settlesWithin(clock, 100, halt, new Promise(() => {})));
    await clock.advance(99);
    expect(late.settled).toBe(false);
    await clock.advance(1);
    expect([late.value, clock.timers]).toEqual([false, 0]);
  });

  it("is not waited for after the stop", async () => {
    const waiting = outcome(settlesWithin(clock, 100, halt, new Promise(() => {})));
    halt.stop();
    await clock.advance(0);
    expect([waiting.value, clock.timers]).toEqual([false, 0]);
  });
});

describe("a bounded call", () => {
  it("gives its answer, or its error, and leaves neither timer nor listener", async () => {
    const answered = outcome(bounded(clock, 100, halt, "asking", async () => "yes"));
    const failed = outcome(bounded(clock, 100, halt, "asking", () => Promise.reject(new Error("no"))));
    const threw = outcome(
      bounded(clock, 100, halt, "asking", () => {
        throw new Error("at the call");
      }),
    );
    await clock.advance(0);
    expect(answered.value).toBe("yes");
    expect([failed.error, threw.error]).toMatchObject([{ message: "no" }, { message: "at the call" }]);
    expect(clock.timers).toBe(0);
  });

  it("is given up after its limit, with an error that says what and how long, and its signal aborts", async () => {
    let signal: AbortSignal | undefined;
    const hanging = outcome(
      bounded(clock, 99.6, halt, "asking", (given) => {
        signal = given;
        return new Promise(() => {});
      }),
    );
    await clock.advance(99);
    expect([hanging.settled, signal?.aborted]).toEqual([false, false]);
    await clock.advance(1);
    expect(hanging.error).toMatchObject({ code: "timeout", retriable: true });
    expect(hanging.error).toMatchObject({
      message: expect.stringMatching(/^asking was not answered within 100 ms/),
    });
    expect(signal?.reason).toBe(hanging.error);
    expect(clock.timers).toBe(0);
  });

  it("is given up with its stop, for the stop's reason; a call is not made after it", async () => {
    const why = new Error("changed its mind");
    let calls = 0;
    let signal: AbortSignal | undefined;
    const call = (given: AbortSignal): Promise<never> => {
      calls++;
      signal = given;
      return new Promise(() => {});
    };
    const cut = outcome(bounded(clock, 100, halt, "asking", call));
    halt.stop(why);
    const never = outcome(bounded(clock, 100, halt, "asking", call));
    await clock.advance(0);
    expect([cut.error, never.error, signal?.reason]).toEqual([why, why, why]);
    expect([calls, clock.timers]).toEqual([1, 0]);
  });

  it("whose timer is late by 50 ms gets a moment more: the answer may lie unread", async () => {
    const hanging = (): { settled: boolean } =>
      outcome(limited(clock, 100, halt, "asking", () => new Promise(() => {})));
    const punctual = hanging();
    clock.stall(149);
    await clock.advance(0);
    expect(punctual.settled).toBe(true);
    const late = hanging();
    clock.stall(150);
    await clock.advance(0);
    expect(late.settled).toBe(false);
    await clock.advance(9);
    expect(late.settled).toBe(false);
    await clock.advance(1);
    expect([late.settled, clock.timers]).toEqual([true, 0]);
  });

  it("whose answer comes in that moment has been answered", async () => {
    const { promise, resolve } = deferred<string>();
    const late = outcome(limited(clock, 100, halt, "asking", () => promise));
    clock.stall(1_000);
    await clock.advance(5);
    resolve("yes");
    await clock.advance(5);
    expect([late.value, clock.timers]).toEqual(["yes", 0]);
  });

  it("that settles after it was given up changes nothing", async () => {
    const { promise, resolve } = deferred<string>();
    const hanging = outcome(limited(clock, 100, halt, "asking", () => promise));
    await clock.advance(100);
    const { error } = hanging;
    resolve("too late");
    await clock.advance(0);
    expect([hanging.value, hanging.error]).toEqual([undefined, error]);
  });
});

describe("waiting until an abort", () => {
  it("gives what came before it", async () => {
    expect(await untilAborted(halt, Promise.resolve("yes"))).toBe("yes");
    await expect(untilAborted(halt, Promise.reject(new Error("no")))).rejects.toThrow("no");
  });

  it("rejects with the reason, and what comes later is nobody's, not even its rejection", async () => {
    let fail: (error: Error) => void = () => {};
    const promise = new Promise<never>((_, reject) => (fail = reject));
    const waiting = outcome(untilAborted(halt, promise));
    halt.stop(new Error("why"));
    fail(new Error("later"));
    await clock.advance(0);
    expect(waiting.error).toMatchObject({ message: "why" });
    await expect(untilAborted(halt, new Promise(() => {}))).rejects.toThrow("why");
  });
});
