/** What only a record can do wrong. */
import { expect, test } from "vitest";
import { RecordFence } from "../../src/fencing/index.js";
import { memoryBackend } from "../../src/index.js";

test("what would be too large to be read again is refused, and what was there stays", async () => {
  const { records } = memoryBackend();
  const fence = new RecordFence({ records, name: "list" });
  await fence.write(7n, "small");
  const quotes = '"'.repeat(200 * 1024); // twice as long once it is written down
  await expect(fence.write(8n, quotes)).rejects.toMatchObject({ code: "invalid" });
  expect(await fence.read()).toEqual({ token: 7n, data: "small" });
  await fence.write(8n, "still writable");
  await fence.check(8n);
});
