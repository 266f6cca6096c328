import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/kit/clock.js";
import { StopSource } from "../../src/kit/stop.js";
import { bounded, onAbort } from "../../src/kit/wait.js";

describe("a halt", () => {
  it("tells every listener once, with its first reason", () => {
    const halt = new StopSource();
    const told: string[] = [];
    onAbort(halt, () => told.push("a"));
    onAbort(halt, () => told.push("b"))();
    onAbort(halt, () => told.push("c"));
    const why = new Error("first");
    halt.stop(why);
    halt.stop(new Error("second"));
    expect(told).toEqual(["a", "c"]);
    expect(halt.aborted).toBe(true);
    expect(halt.reason).toBe(why);
  });

  it("tells those who come later at once, and those who come after all others have left", () => {
    const halt = new StopSource();
    const told: string[] = [];
    onAbort(halt, () => told.push("gone"))();
    onAbort(halt, () => told.push("stayed"));
    halt.stop();
    onAbort(halt, () => told.push("late"));
    expect(told).toEqual(["stayed", "late"]);
  });

  it("a listener that leaves while others are told is not told", () => {
    const halt = new StopSource();
    const told: string[] = [];
    onAbort(halt, () => {
      told.push("a");
      halt.removeEventListener("abort", b);
    });
    const b = (): void => void told.push("b");
    onAbort(halt, b);
    halt.stop();
    expect(told).toEqual(["a"]);
  });

  it("ends a call that is under way, and the next before it begins, like an aborted signal", async () => {
    const halt = new StopSource();
    const call = (): Promise<string> =>
      bounded(systemClock, 10_000, halt, "waiting", () => new Promise(() => {}));
    const under = call();
    halt.stop();
    await expect(under).rejects.toMatchObject({ name: "AbortError" });
    await expect(call()).rejects.toMatchObject({ name: "AbortError" });
  });

  it("gives an AbortSignal that aborts with it, made before the stop or after it, with the same reason", () => {
    const halt = new StopSource();
    const { signal } = halt;
    expect([signal.aborted, halt.signal === signal]).toEqual([false, true]);
    halt.stop("enough");
    expect([signal.aborted, signal.reason]).toEqual([true, "enough"]);
    const over = new StopSource();
    over.stop();
    expect([over.signal.aborted, over.signal.reason]).toEqual([true, over.reason]);
  });
});
