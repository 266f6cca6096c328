import { expect, test } from "vitest";
import { Lock, memoryBackend } from "../../src/index.js";

test("a lock closed by the first line of its work is given back after the work", async () => {
  const backend = memoryBackend();
  await using lock = new Lock({ name: "l", backend });
  await using other = new Lock({ name: "l", backend });
  let finish = (): void => {};
  const began = new Promise<void>((begin) => {
    void lock
      .withLock(async () => {
        void lock.close();
        begin();
        await new Promise<void>((resolve) => (finish = resolve));
      })
      .catch(() => {}); // closed: not held to its end, and says so
  });
  await began;
  for (let i = 0; i < 10; i++) await new Promise((resolve) => setImmediate(resolve));
  expect(await other.tryAcquire()).toBeNull();
  finish();
  const term = await other.acquire({ timeoutMs: 5_000 });
  expect(term.held).toBe(true);
  await term.resign();
});
