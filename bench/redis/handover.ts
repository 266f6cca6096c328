/** How long nobody leads when the leader resigns: resign() to the next leader, in turns with what people use today. */
import { Redis } from "ioredis";
import { Mutex } from "redis-semaphore";
import Redlock from "redlock";
import { openRedis } from "../../src/backends/redis/index.js";
import { Election } from "../../src/election/election.js";
import type { Term } from "../../src/api/term.js";
import type { RedisServer } from "../../test/support/redis-server.js";
import { until } from "../../test/support/until.js";
import { type Row, show, summarize } from "../measure.js";

const HANDOVERS = Number(process.env["BENCH_COUNT"] ?? 200);
const WARM_UP = 10;
const BLOCK = 20;
const SETTLED_MS = 50;
const TTL_MS = 10_000;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** One holder and one that waits, again and again. `next` resolves when the waiting one holds it. */
interface Contest {
  /** Begins to wait; resolves with the way to give it up. */
  wait(index: number): Promise<() => Promise<void>>;
  close(): Promise<void>;
}

async function ours(server: RedisServer): Promise<Contest> {
  const elections = await Promise.all(
    [0, 1].map(
      async () =>
        new Election({
          name: "handover",
          backend: await openRedis(server.url, { quarantine: false }),
          ttlMs: TTL_MS,
          closeBackend: true,
        }),
    ),
  );
  return {
    wait: async (index) => {
      const term: Term = await elections[index]!.campaign();
      return () => term.resign().then(() => {});
    },
    close: async () => void (await Promise.all(elections.map((election) => election.close()))),
  };
}

async function semaphore(server: RedisServer): Promise<Contest> {
  const client = new Redis({ port: server.port });
  return {
    wait: async () => {
      const mutex = new Mutex(client, "semaphore", { lockTimeout: TTL_MS, acquireTimeout: 60_000 });
      await mutex.acquire();
      return () => mutex.release();
    },
    close: async () => client.disconnect(),
  };
}

async function redlock(server: RedisServer): Promise<Contest> {
  const client = new Redis({ port: server.port });
  const redlock = new Redlock([client], { retryCount: -1 });
  redlock.on("error", () => {});
  return {
    wait: async () => {
      const lock = await redlock.acquire(["redlock"], TTL_MS);
      return () => lock.release().then(() => {});
    },
    close: async () => client.disconnect(),
  };
}

async function turns(contest: Contest, samples: number[], count: number): Promise<void> {
  let giveUp = await contest.wait(0);
  for (let i = 1; i <= count; i++) {
    let won: number | undefined;
    const next = contest.wait(i % 2).then((way) => {
      won = performance.now();
      return way;
    });
    await pause(SETTLED_MS);
    const asked = performance.now();
    await giveUp();
    await until(() => won !== undefined);
    samples.push(won! - asked);
    giveUp = await next;
  }
  await giveUp();
}

export async function* handover(server: RedisServer): AsyncGenerator<Row> {
  const contests = await Promise.all([ours(server), semaphore(server), redlock(server)]);
  const samples: number[][] = [[], [], []];
  for (const [index, contest] of contests.entries()) await turns(contest, [], index === 0 ? WARM_UP : 2);
  for (let done = 0; done < HANDOVERS; done += BLOCK)
    for (const [index, contest] of contests.entries()) await turns(contest, samples[index]!, BLOCK);
  await Promise.all(contests.map((contest) => contest.close()));
  const [a, b, c] = samples.map((all) => show(summarize(all)));
  yield {
    what: "graceful handover, resign() to the next leader",
    result: a!,
    beside: `redis-semaphore: ${b}; redlock: ${c}`,
  };
}
