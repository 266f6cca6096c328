/** Whatever users throw, the election goes on: `run()` does not end, nothing is left unhandled. */
import { expect, test } from "vitest";
import { Election, memoryBackend } from "../../src/index.js";
import { describe as inWords } from "../../src/kit/errors.js";

/** `String()` of it throws. */
const unspeakable: unknown = Object.create(null);

test("anything thrown has one line of text", () => {
  expect(inWords(new Error("plain"))).toBe("plain");
  expect(inWords("text")).toBe("text");
  expect(inWords(undefined)).toBe("undefined");
  expect(inWords(Symbol("s"))).toBe("Symbol(s)");
  expect(inWords(new Error("two\n  lines"))).toBe("two lines");
  expect(inWords(Object.assign(new AggregateError([]), { code: "ECONNREFUSED" }))).toBe("ECONNREFUSED");
  expect(inWords(new RangeError())).toBe("RangeError");
  expect(inWords(unspeakable)).toMatch(/cannot be shown/);
  const hostile = new Error("x");
  Object.defineProperty(hostile, "message", {
    get() {
      throw new Error("from the getter");
    },
  });
  expect(inWords(hostile)).toMatch(/cannot be shown/);
});

test("run() survives work that throws what cannot be shown as text", async () => {
  const election = new Election({ name: "e", backend: memoryBackend(), ttlMs: 1000, retryMs: 10 });
  let terms = 0;
  const twice = new Promise<void>((resolve) => {
    const running = election.run(async () => {
      if (++terms === 2) resolve();
      throw unspeakable;
    });
    running.then(resolve, resolve);
  });
  await twice;
  await election.close();
  expect(terms).toBe(2);
});

test("a listener that throws what cannot be shown leaves no unhandled rejection", async () => {
  const unhandled: unknown[] = [];
  const note = (error: unknown): void => void unhandled.push(error);
  const others = process.listeners("unhandledRejection");
  process.removeAllListeners("unhandledRejection");
  process.on("unhandledRejection", note);
  try {
    const election = new Election({ name: "e", backend: memoryBackend(), ttlMs: 1000 });
    election.on("elected", () => {
      throw unspeakable;
    });
    await election.campaign();
    await election.close();
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    process.off("unhandledRejection", note);
    for (const other of others) process.on("unhandledRejection", other);
  }
  expect(unhandled).toEqual([]);
});
