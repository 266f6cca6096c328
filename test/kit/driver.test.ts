/** Helpers for drivers that know no AbortSignal. */
import { describe, expect, test } from "vitest";
import { abortable, boundedCall } from "../../src/kit/driver.js";
import { deferred } from "../../src/kit/wait.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";

const reason = new Error("the caller gave up");

describe("abortable", () => {
  test("answers as the driver does, and cancels nothing", async () => {
    const { signal } = new AbortController();
    const cancelled: string[] = [];
    const cancel = (): void => void cancelled.push("cancelled");
    await expect(abortable(signal, async () => 7, { cancel })).resolves.toBe(7);
    const failing = abortable(signal, () => Promise.reject(new Error("no table")), { cancel });
    await expect(failing).rejects.toThrow("no table");
    expect(cancelled).toEqual([]);
  });

  test("ends when the signal aborts, cancels once, and hands on what comes late", async () => {
    const stop = new AbortController();
    const answer = deferred<string>();
    const calls: string[] = [];
    const options = {
      cancel: () => void calls.push("cancel"),
      late: (value: string) => void calls.push(`late ${value}`),
    };
    const waiting = abortable(stop.signal, () => answer.promise, options);
    stop.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    expect(calls).toEqual(["cancel"]);
    answer.resolve("connection");
    await answer.promise;
    await Promise.resolve();
    expect(calls).toEqual(["cancel", "late connection"]);
  });

  test("does not begin with an aborted signal", async () => {
    let begun = false;
    const call = async (): Promise<void> => void (begun = true);
    await expect(abortable(AbortSignal.abort(reason), call)).rejects.toBe(reason);
    expect(begun).toBe(false);
  });

  test("a driver that rejects after the abort is heard by nobody, and harms nobody", async () => {
    const stop = new AbortController();
    let fail!: (error: Error) => void;
    const driver = new Promise<never>((_, reject) => (fail = reject));
    const waiting = abortable(stop.signal, () => driver, { late: () => {} });
    stop.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    fail(new Error("too late")); // vitest fails the run on an unhandled rejection
    await driver.catch(() => {});
  });
});

test("boundedCall ends at its limit, with an error that says so, and aborts the call", async () => {
  const clock = new VirtualClock();
  const stop = new AbortController();
  let inner: AbortSignal | undefined;
  const call = boundedCall(
    { signal: stop.signal, limitMs: 500, what: "reading the lease", clock },
    (signal) => {
      inner = signal;
      return new Promise<never>(() => {});
    },
  );
  const ended = call.catch((error: unknown) => error);
  await clock.advance(499);
  expect(inner?.aborted).toBe(false);
  await clock.advance(2);
  const error = await ended;
  expect(error).toMatchObject({ code: "timeout" });
  expect(String(error)).toContain("reading the lease");
  expect(inner?.aborted).toBe(true);
  expect(clock.timers).toBe(0);
});
