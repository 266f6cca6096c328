import { expect, test } from "vitest";
import { Election, memoryBackend } from "../../src/index.js";
import type { Term, Work } from "../../src/index.js";

/** Runs `work` once, stops when it is leading, and tells which errors were reported. */
async function errorsOf(work: Work): Promise<unknown[]> {
  const stop = new AbortController();
  const errors: unknown[] = [];
  await using election = new Election({ name: "e", backend: memoryBackend(), ttlMs: 2000 });
  election.on("error", ({ error }) => errors.push(error));
  election.on("elected", () => void setImmediate(() => stop.abort()));
  await election.run(work, { signal: stop.signal });
  await new Promise((resolve) => setImmediate(resolve));
  return errors;
}

const stopped = (term: Term) =>
  new Promise<void>((resolve) => term.signal.addEventListener("abort", () => resolve(), { once: true }));

test("work that rejects because it was told to stop has not failed", async () => {
  expect(await errorsOf(() => Promise.resolve())).toEqual([]);
  expect(await errorsOf((term) => stopped(term).then(() => term.signal.throwIfAborted()))).toEqual([]);
  const aborted = new DOMException("aborted", "AbortError");
  expect(await errorsOf((term) => stopped(term).then(() => Promise.reject(aborted)))).toEqual([]);
});

test("what its clean-up throws is reported", async () => {
  const broken = new Error("cannot close the file");
  expect(await errorsOf((term) => stopped(term).then(() => Promise.reject(broken)))).toEqual([broken]);
});

test("work that resigns in its first line is still waited for before another may lead", async () => {
  const backend = memoryBackend();
  await using first = new Election({ name: "e", backend, ttlMs: 2000 });
  await using second = new Election({ name: "e", backend, ttlMs: 2000 });
  const stop = new AbortController();
  let finish = (): void => {};
  let running: Promise<void> | undefined;
  await new Promise<void>((begin) => {
    running = first.run(
      async (term) => {
        void term.resign();
        begin();
        await new Promise<void>((resolve) => (finish = resolve));
        stop.abort();
      },
      { signal: stop.signal },
    );
  });
  for (let i = 0; i < 10; i++) await new Promise((resolve) => setImmediate(resolve));
  expect(await second.tryCampaign()).toBeNull();
  finish();
  await running;
  const term = await second.tryCampaign();
  expect(term?.held).toBe(true);
});
