import { expect, test } from "vitest";
import { systemClock } from "../../src/core/clock.js";
import { Waker } from "../../src/record/waker.js";

test("a watch that throws at the call costs latency, not the campaign", async () => {
  const store = {
    watch: (): Promise<void> => {
      throw new Error("no watches here");
    },
  };
  const waker = new Waker(systemClock, store, "e");
  expect(await waker.wait(1, new AbortController().signal)).toBe("timer");
  expect(await waker.wait(1, new AbortController().signal)).toBe("timer");
  waker.close();
});
