/** How many leaderships can be taken and given back in a second, each with a name of its own. */
import { setMaxListeners } from "node:events";
import { Redis } from "ioredis";
import { Mutex } from "redis-semaphore";
import Redlock from "redlock";
import { openRedis } from "../../src/backends/redis/index.js";
import type { RedisServer } from "../../test/support/redis-server.js";
import { systemClock } from "../../src/kit/clock.js";
import type { Row } from "../measure.js";

const SECONDS = Number(process.env["BENCH_SECONDS"] ?? 3);
const TTL_MS = 10_000;

async function rate(width: number, act: (name: string) => Promise<void>): Promise<string> {
  const until = performance.now() + SECONDS * 1000;
  let done = 0;
  await Promise.all(
    Array.from({ length: width }, async (_, lane) => {
      while (performance.now() < until) {
        await act(`lane-${lane}`);
        done++;
      }
    }),
  );
  return `${Math.round(done / SECONDS)}/s`;
}

export async function* acquireRelease(server: RedisServer): AsyncGenerator<Row> {
  await using backend = await openRedis(server.url, { quarantine: true });
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  const { signal } = new AbortController();
  setMaxListeners(0, signal);
  const client = new Redis({ port: server.port });
  const redlock = new Redlock([client], { retryCount: 0, automaticExtensionThreshold: 1 });
  const ways: readonly [string, (name: string) => Promise<void>][] = [
    [
      "conclave",
      async (name) => {
        const candidacy = { election: name, candidate: `me-${systemClock.uniqueId()}`, value: "" };
        const hold = await backend.campaign(
          { ...candidacy, ttlMs: 1_000, retryMs: 1_000, attemptMs: 5_000 },
          { wait: false, signal },
        );
        await hold!.release({ signal });
      },
    ],
    [
      "redis-semaphore",
      async (name) => {
        const mutex = new Mutex(client, name, { lockTimeout: TTL_MS, refreshInterval: 0 });
        await mutex.acquire();
        await mutex.release();
      },
    ],
    ["redlock", async (name) => void (await (await redlock.acquire([name], TTL_MS)).release())],
  ];
  for (const width of [1, 100]) {
    const results: string[] = [];
    for (const [name, act] of ways) results.push(`${name} ${await rate(width, act)}`);
    const [ours, ...others] = results;
    yield { what: `acquire and release, ${width} at a time`, result: ours!, beside: others.join("; ") };
  }
  client.disconnect();
}
