import { expect, test } from "vitest";
import { Lock, memoryBackend } from "../../src/index.js";
import type { Term } from "../../src/index.js";
import { BlockableStore } from "./blockable.js";

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("one holder at a time, the token rises, callers of one object are served in order", async () => {
  const backend = memoryBackend();
  await using lock = new Lock({ name: "l", backend, ttlMs: 2000 });
  const order: number[] = [];
  let inside = 0;
  const tokens: bigint[] = [];
  await Promise.all(
    [1, 2, 3, 4].map((n) =>
      lock.withLock(async (term) => {
        expect(++inside).toBe(1);
        order.push(n);
        tokens.push(term.token);
        expect(lock.held).toBe(true);
        expect(lock.token).toBe(term.token);
        expect(lock.signal).toBe(term.signal);
        await turn();
        inside--;
      }),
    ),
  );
  expect(order).toEqual([1, 2, 3, 4]);
  expect(tokens).toEqual([...tokens].sort((a, b) => Number(a - b)));
  expect(new Set(tokens).size).toBe(4);
  expect(lock.held).toBe(false);
  expect(() => lock.token).toThrow(/not held/);
});

test("await using gives it back, also when the block throws", async () => {
  const backend = memoryBackend();
  await using a = new Lock({ name: "l", backend, ttlMs: 2000 });
  await using b = new Lock({ name: "l", backend, ttlMs: 2000 });
  const broken = async (): Promise<void> => {
    await using term = await a.acquire();
    expect(term.held).toBe(true);
    expect(await b.tryAcquire()).toBeNull();
    throw new Error("mine");
  };
  await expect(broken()).rejects.toThrow("mine");
  await using term = await b.acquire({ timeoutMs: 5000 });
  expect(term.held).toBe(true);
});

test("tryAcquire asks once; acquire gives up at its time limit, at its signal and when the lock is closed", async () => {
  const backend = memoryBackend();
  await using a = new Lock({ name: "l", backend, ttlMs: 2000 });
  const b = new Lock({ name: "l", backend, ttlMs: 2000 });
  const held = await a.acquire();
  expect(await a.tryAcquire()).toBeNull();
  expect(await b.tryAcquire()).toBeNull();
  await expect(b.acquire({ timeoutMs: 30 })).rejects.toMatchObject({ code: "timeout" });
  const stop = new AbortController();
  const aborted = b.acquire({ signal: stop.signal });
  stop.abort(new Error("enough"));
  await expect(aborted).rejects.toThrow("enough");
  const closed = b.acquire();
  await turn();
  await Promise.all([b.close(), expect(closed).rejects.toMatchObject({ code: "state" })]);
  await expect(b.acquire()).rejects.toMatchObject({ code: "state" });
  await expect(a.acquire({ timeoutMs: -1 })).rejects.toMatchObject({ code: "invalid" });
  expect(held.held).toBe(true);
});

test("who gives up does not let later callers past the holder", async () => {
  await using lock = new Lock({ name: "l", backend: memoryBackend(), ttlMs: 2000 });
  const first = await lock.acquire();
  const second = lock.acquire({ timeoutMs: 20 });
  let third: Term | undefined;
  const waiting = lock.acquire().then((term) => (third = term));
  await expect(second).rejects.toMatchObject({ code: "timeout" });
  await turn();
  expect(third).toBeUndefined();
  await first.resign();
  await (await waiting).resign();
});

test("closing waits for the work under the lock before it gives it back", async () => {
  const backend = memoryBackend();
  const a = new Lock({ name: "l", backend, ttlMs: 2000 });
  await using b = new Lock({ name: "l", backend, ttlMs: 2000 });
  const log: string[] = [];
  const working = a.withLock(async (term) => {
    log.push("a in");
    await new Promise<void>((resolve) => term.signal.addEventListener("abort", () => resolve()));
    await turn();
    expect(term.held).toBe(true);
    log.push("a out");
  });
  while (!a.held) await turn();
  const next = b.withLock(() => void log.push("b in"));
  await a.close();
  await Promise.all([working, next]);
  expect(log).toEqual(["a in", "a out", "b in"]);
});

test("the work's own error goes first", async () => {
  await using lock = new Lock({ name: "l", backend: memoryBackend(), ttlMs: 2000 });
  await expect(lock.withLock(() => Promise.reject(new Error("mine")))).rejects.toThrow("mine");
  expect(await lock.withLock(() => 7)).toBe(7);
});

test("a lock lost under the work is not passed off as success", async () => {
  const store = new BlockableStore(memoryBackend());
  await using lock = new Lock({ name: "l", backend: store.backend, ttlMs: 600 });
  const work = lock.withLock(async (term) => {
    store.blocked = true;
    await new Promise<void>((resolve) => term.signal.addEventListener("abort", () => resolve()));
    return "done";
  });
  await expect(work).rejects.toMatchObject({ code: "not-leader" });
  store.blocked = false;
});
