import { describe, expect, it } from "vitest";
import { Halt } from "../../src/core/halt.js";

describe("a halt", () => {
  it("aborts every link, with its first reason, and those made later at once", () => {
    const halt = new Halt();
    const [a, b] = [halt.link(), halt.link()];
    b.unlink();
    const why = new Error("first");
    halt.halt(why);
    halt.halt(new Error("second"));
    expect(halt.halted).toBe(true);
    expect(a.controller.signal.reason).toBe(why);
    expect(b.controller.signal.aborted).toBe(false);
    expect(halt.link().controller.signal.reason).toBe(why);
  });

  it("ends a call that is under way, and forgets one that is over", async () => {
    const halt = new Halt();
    const signals: AbortSignal[] = [];
    await halt.during(async (signal) => void signals.push(signal));
    const ended = halt.during(
      (signal) =>
        new Promise<string>((resolve) => {
          signals.push(signal);
          signal.addEventListener("abort", () => resolve("ended"));
        }),
    );
    halt.halt();
    await expect(ended).resolves.toBe("ended");
    expect(signals.map(({ aborted }) => aborted)).toEqual([false, true]);
  });

  it("links made after all others left are still aborted", () => {
    const halt = new Halt();
    halt.link().unlink();
    const late = halt.link();
    halt.halt();
    expect(late.controller.signal.aborted).toBe(true);
  });
});
