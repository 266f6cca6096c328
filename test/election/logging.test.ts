/** Loggers that people have, and none. */
import { Console } from "node:console";
import { PassThrough } from "node:stream";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { Election, memoryBackend } from "../../src/index.js";
import type { Logger } from "../../src/index.js";

/** Calls as they come, of a logger with a method that only this kind has. */
function recorded(own: Record<string, unknown>): { readonly calls: unknown[][]; readonly logger: Logger } {
  const calls: unknown[][] = [];
  const say = (...args: unknown[]): void => void calls.push(args);
  return { calls, logger: { debug: say, info: say, warn: say, error: say, ...own } };
}

async function failOnce(logger: Logger | undefined, name = "x"): Promise<void> {
  await using election = new Election({ name, id: "me", backend: memoryBackend(), logger });
  const stop = new AbortController();
  await election.run(
    () => {
      stop.abort();
      throw new TypeError("broken work");
    },
    { signal: stop.signal },
  );
}

const FIELDS = {
  election: "x",
  candidate: expect.stringMatching(/^me-/),
  backend: "memory",
  err: { type: "TypeError", message: "broken work", stack: expect.stringContaining("logging.test.ts") },
};

describe("work that throws", () => {
  it("goes to pino with the fields first", async () => {
    const { calls, logger } = recorded({ bindings: () => ({}) });
    await failOnce(logger);
    expect(calls).toContainEqual([expect.objectContaining(FIELDS), 'election "x": working: broken work']);
  });

  it("goes to other loggers with the fields second, and the token while it leads", async () => {
    const { calls, logger } = recorded({});
    await failOnce(logger);
    expect(calls).toContainEqual(['election "x": working: broken work', expect.objectContaining(FIELDS)]);
    const elected = calls.find(([text]) => String(text).includes("leads with token"))!;
    expect(elected[1]).toMatchObject({ token: expect.stringMatching(/^\d+$/) });
  });

  it("goes to console as text, with the stack", async () => {
    const sink = new PassThrough();
    await failOnce(new Console(sink));
    const text = String(sink.read());
    expect(text).toMatch(
      /election "x": working: broken work\nTypeError: broken work\n {4}at .*logging\.test\.ts/,
    );
    expect(text).not.toContain("[object Object]");
  });

  it("is said on stderr if nobody listens, once for each election", async () => {
    const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    onTestFinished(() => warned.mockRestore());
    await failOnce(undefined, "lonely");
    await failOnce(undefined, "lonely");
    expect(warned.mock.calls).toEqual([
      [expect.stringMatching(/^election "lonely": working: broken work\. Nobody listens/), expect.anything()],
    ]);
  });
});

it("a follower says who leads, once for each leader", async () => {
  const backend = memoryBackend();
  const { calls, logger } = recorded({});
  await using first = new Election({ name: "x", id: "first", backend });
  const term = await first.campaign();
  await using second = new Election({ name: "x", id: "second", backend, logger, retryMs: 10 });
  const campaign = second.campaign();
  await vi.waitFor(() =>
    expect(calls.map(([text]) => text)).toContain(
      `election "x": following: ${first.candidate} leads with token ${term.token}`,
    ),
  );
  await term.resign();
  await (await campaign).resign();
  expect(calls.filter(([text]) => String(text).includes("following"))).toHaveLength(1);
});
