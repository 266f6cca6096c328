/** Six processes race for stale leases; long form with CONCLAVE_LONG (rounds: CONCLAVE_ROUNDS). */
import type { ChildProcess } from "node:child_process";
import { describe, expect, it } from "vitest";
import { encodeLease } from "../../src/record/codec.js";
import { start } from "./children.js";
import { open, rounds, storeIn, tempDirectory } from "./support.js";

const RACERS = 6;
const BATCH = 10;
const STALE_TTL_MS = 500;

type Message = {
  ready?: true;
  stopped?: true;
  won?: string;
  token?: string;
  failed?: string;
  error?: string;
};

/** Waits until every racer has said what `wanted` looks for. */
function all(racers: readonly ChildProcess[], wanted: (message: Message) => boolean): Promise<void[]> {
  return Promise.all(
    racers.map(
      (racer) =>
        new Promise<void>((resolve) => {
          const listen = (message: Message): void => {
            if (!wanted(message)) return;
            racer.off("message", listen);
            resolve();
          };
          racer.on("message", listen);
        }),
    ),
  );
}

describe("six processes and a stale lease", () => {
  const total = rounds(20, 200);

  it(`have exactly one winner in each of ${total} rounds`, { timeout: 60_000 + total * 1000 }, async () => {
    const directory = await tempDirectory();
    const store = storeIn(directory);
    const racers = Array.from({ length: RACERS }, () => start("racer", directory));
    const winners = new Map<string, string[]>();
    const failures: string[] = [];
    for (const racer of racers) {
      racer.on("message", ({ won, token, failed, error }: Message) => {
        if (won !== undefined) winners.set(won, [...(winners.get(won) ?? []), token ?? ""]);
        if (failed !== undefined) failures.push(`${failed}: ${error}`);
      });
    }
    await all(racers, (message) => message.ready === true);
    const stale = new Map<string, bigint>();
    for (let done = 0; done < total; done += BATCH) {
      const names = Array.from({ length: Math.min(BATCH, total - done) }, (_, i) => `round ${done + i}`);
      const ghost = { holder: "ghost", ttlMs: STALE_TTL_MS, value: "", since: 1, token: null };
      for (const name of names)
        stale.set(name, (await store.write(name, null, encodeLease(ghost), open))!.version);
      for (const racer of racers) racer.send({ race: names });
      while (names.some((name) => !winners.has(name)))
        await new Promise((resolve) => setTimeout(resolve, 20));
      // Whoever else were to believe in a victory has had its chance by now, many times over.
      await new Promise((resolve) => setTimeout(resolve, 250));
      const stopped = all(racers, (message) => message.stopped === true);
      for (const racer of racers) racer.send({ stop: true });
      await stopped;
    }
    expect(failures).toEqual([]);
    expect(winners.size).toBe(total);
    for (const [name, tokens] of winners) {
      expect({ name, winners: tokens.length }).toEqual({ name, winners: 1 });
      expect(BigInt(tokens[0]!)).toBeGreaterThan(stale.get(name)!);
    }
  });
});
