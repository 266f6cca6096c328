import { expect, test } from "vitest";
import { Election, memoryBackend } from "../../src/index.js";

test("a second candidate leads when the first resigns, with a higher token", async () => {
  const backend = memoryBackend();
  await using a = new Election({ name: "e", backend, id: "a", ttlMs: 2000 });
  await using b = new Election({ name: "e", backend, id: "b", ttlMs: 2000 });
  const first = await a.campaign();
  expect(first.held).toBe(true);
  expect(await b.tryCampaign()).toBeNull();
  const waiting = b.campaign();
  await first.resign();
  expect(first.held).toBe(false);
  const second = await waiting;
  expect(second.token).toBeGreaterThan(first.token);
  expect(second.held).toBe(true);
});

test("run works, stops its work before it resigns, and ends with its signal", async () => {
  const backend = memoryBackend();
  const log: string[] = [];
  const stop = new AbortController();
  await using a = new Election({ name: "e", backend, id: "a", ttlMs: 2000 });
  await using b = new Election({ name: "e", backend, id: "b", ttlMs: 2000 });
  const running = a.run(
    async (term) => {
      log.push("a works");
      await new Promise<void>((resolve) => term.signal.addEventListener("abort", () => resolve()));
      expect(term.held).toBe(true);
      log.push("a stopped");
    },
    { signal: stop.signal },
  );
  while (!a.leading) await new Promise((r) => setImmediate(r));
  const next = b.campaign().then((term) => (log.push("b leads"), term));
  stop.abort();
  await running;
  await next;
  expect(log).toEqual(["a works", "a stopped", "b leads"]);
});

test("observers see leaders come and go", async () => {
  const backend = memoryBackend();
  await using a = new Election({ name: "e", backend, id: "a", ttlMs: 2000 });
  const seen: (string | null)[] = [];
  const stop = new AbortController();
  const watching = (async () => {
    for await (const leader of a.observe({ signal: stop.signal })) {
      seen.push(leader?.value ?? null);
      if (seen.length === 4) stop.abort();
    }
  })();
  while (seen.length < 1) await new Promise((r) => setImmediate(r));
  const term = await a.campaign();
  while (seen.length < 2) await new Promise((r) => setImmediate(r));
  await term.proclaim("hello");
  while (seen.length < 3) await new Promise((r) => setImmediate(r));
  await term.resign();
  await watching;
  expect(seen).toEqual([null, a.candidate, "hello", null]);
});
