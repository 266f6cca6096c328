import { expect, test } from "vitest";
import { Election, memoryBackend } from "../../src/index.js";

test("lines for a logger cannot steer the terminal they end up in, whatever names they hold", async () => {
  const lines: string[] = [];
  const keep = (line: string): void => void lines.push(line);
  const logger = { debug: keep, info: keep, warn: keep, error: keep };
  await using election = new Election({
    name: "jobs\u202ex",
    id: "web\u200b\u2066",
    backend: memoryBackend(),
    logger,
  });
  await (await election.campaign()).resign();
  expect(lines.length).toBeGreaterThan(0);
  expect(lines.join("\n")).toContain('election "jobs\\u202ex": web\\u200b\\u2066-');
  for (const line of lines) expect(line).not.toMatch(/[\p{Cc}\p{Cf}]/u);
});
