/**
 * A process killed at any call to the file system leaves an election that
 * another candidate wins in time; one more case with CONCLAVE_LONG.
 */
import { once } from "node:events";
import { readdir } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { fileBackend } from "../../src/backends/file/index.js";
import { Election } from "../../src/election/election.js";
import { encodeLease } from "../../src/record/codec.js";
import { pooled, start } from "./children.js";
import { open, storeIn, tempDirectory } from "./support.js";

const TTL_MS = 1000;
const RETRY_MS = 200;
/** What a busy machine may add: little as a rule, much at worst. */
const SLACK_MS = 1500;
const WORST_SLACK_MS = 20_000;

/** Runs the victim; `null` if it came to its end. */
async function victim(directory: string, at: number, phase: string) {
  const child = start("steps", directory, String(at), phase);
  const [output, [, signal]] = await Promise.all([text(child.stdout!), once(child, "exit")]);
  return { killed: signal === "SIGKILL", output };
}

/** A directory with a past: every write prunes. */
async function settled(directory: string): Promise<void> {
  const store = storeIn(directory, { durability: () => "none" });
  const vacant = encodeLease({ holder: null, ttlMs: TTL_MS, value: "", since: 1, token: 1n });
  let version: bigint | null = null;
  for (let i = 0; i < 20; i++) version = (await store.write("a", version, vacant, open))!.version;
  await store[Symbol.asyncDispose]();
}

const LONG = Boolean(process.env["CONCLAVE_LONG"]);

describe.each([
  ["an empty directory", async () => {}, true],
  ["a directory with a past, the dead-process rule off", settled, false],
  ...(LONG ? [["a directory with a past", settled, true] as const] : []),
] as const)("in %s", (_, prepare, deadProcessRule) => {
  it("whatever the call", { timeout: 300_000 }, async () => {
    const fresh = async (): Promise<string> => {
      const directory = await tempDirectory();
      await prepare(directory);
      return directory;
    };
    const { output } = await victim(await fresh(), 0, "before");
    const calls = Number(/calls (\d+)/.exec(output)?.[1]);
    expect(calls).toBeGreaterThan(20);
    const points = Array.from({ length: calls }, (_, i) =>
      ["before", "after"].map((phase) => ({ at: i + 1, phase })),
    ).flat();
    const tasks = points.map(({ at, phase }) => async () => {
      const directory = await fresh();
      const death = await victim(directory, at, phase);
      expect(death.killed, `${phase} call ${at}`).toBe(true);
      const died = performance.now();
      const backend = fileBackend({ directory, deadProcessRule });
      const heir = new Election({ name: "a", backend, ttlMs: TTL_MS, retryMs: RETRY_MS, closeBackend: true });
      const term = await heir.campaign();
      const took = performance.now() - died;
      expect(took, `${phase} call ${at}`).toBeLessThan(TTL_MS + RETRY_MS + WORST_SLACK_MS);
      const token = /token (\d+)/.exec(death.output)?.[1];
      if (token !== undefined) expect(term.token).toBeGreaterThan(BigInt(token));
      await heir.close();
      // An attempt that was given up for being slow may still be cleaning up after itself.
      await vi.waitFor(async () =>
        expect((await readdir(join(directory, "staging"))).length).toBeLessThanOrEqual(1),
      );
      return took;
    });
    const times = await pooled(6, tasks);
    expect(times).toHaveLength(2 * calls);
    times.sort((a, b) => a - b);
    const median = times[times.length >> 1]!;
    console.log(
      `${times.length} deaths, next leader after ${median.toFixed()} ms (median), ${times.at(-1)!.toFixed()} ms (worst)`,
    );
    expect(median).toBeLessThan(TTL_MS + RETRY_MS + SLACK_MS);
  });
});
