/** What elections cost the server that do nothing but last. */
import { setMaxListeners } from "node:events";
import { Redis } from "ioredis";
import { Mutex } from "redis-semaphore";
import Redlock from "redlock";
import { openRedis } from "../../src/backends/redis/index.js";
import { Election } from "../../src/election/election.js";
import type { RedisServer } from "../../test/support/redis-server.js";
import type { Row } from "../measure.js";

const TTL_MS = 10_000;
const FOLLOWERS = 20;
const MEASURE_MS = Number(process.env["BENCH_SECONDS"] ?? 20) * 1000;
const MANY = 1_000;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Commands inside scripts are counted too: `wire` names those that came over the wire. */
async function commands(server: RedisServer, wire: readonly string[]): Promise<number> {
  const info = await server.cli("INFO", "commandstats");
  return [...info.matchAll(/^cmdstat_(\w+):calls=(\d+)/gm)].reduce(
    (sum, match) => sum + (wire.includes(match[1]!) ? Number(match[2]) : 0),
    0,
  );
}

const SCRIPTS = ["evalsha", "eval", "ping", "subscribe"];

async function perSecond(server: RedisServer, wire: readonly string[] = SCRIPTS): Promise<string> {
  const [before, started] = [await commands(server, wire), performance.now()];
  await pause(MEASURE_MS);
  return `${(((await commands(server, wire)) - before) / ((performance.now() - started) / 1000)).toFixed(1)} requests/s`;
}

const serving = (election: Election, signal: AbortSignal): Promise<void> =>
  election.run((term) => new Promise((resolve) => term.signal.addEventListener("abort", () => resolve())), {
    signal,
  });

async function ours(server: RedisServer): Promise<string> {
  const stop = new AbortController();
  setMaxListeners(0, stop.signal);
  const elections = await Promise.all(
    Array.from({ length: 1 + FOLLOWERS }, async () => {
      const backend = await openRedis(server.url, { quarantine: false });
      return new Election({ name: "idle", backend, ttlMs: TTL_MS, closeBackend: true });
    }),
  );
  const runs = elections.map((election) => serving(election, stop.signal));
  await pause(3_000);
  const rate = await perSecond(server);
  stop.abort();
  await Promise.all(runs);
  await Promise.all(elections.map((election) => election.close()));
  return rate;
}

/** So many wait for what one holds. `stop` ends what a library does by timers. */
async function waiting(
  server: RedisServer,
  acquire: (client: Redis) => { held: Promise<unknown>; stop?: () => void },
  wire = SCRIPTS,
): Promise<string> {
  const clients = Array.from({ length: 1 + FOLLOWERS }, () => new Redis({ port: server.port }));
  const [first, ...rest] = clients;
  const holder = acquire(first!);
  await holder.held;
  const others = rest.map((client) => acquire(client));
  for (const { held } of others) held.catch(() => {});
  await pause(1_000);
  const rate = await perSecond(server, wire);
  for (const { stop } of [holder, ...others]) stop?.();
  for (const client of clients) client.disconnect();
  return rate;
}

export async function* idle(server: RedisServer): AsyncGenerator<Row> {
  const result = await ours(server);
  const semaphore = await waiting(
    server,
    (client) => {
      const over = new AbortController();
      const mutex = new Mutex(client, "idle", {
        lockTimeout: TTL_MS,
        acquireTimeout: 600_000,
        onLockLost: () => {},
      });
      const stop = (): void => {
        over.abort();
        mutex.stopRefresh();
      };
      return { held: mutex.acquire(over.signal), stop };
    },
    [...SCRIPTS, "set"],
  );
  const redlock = await waiting(server, (client) => {
    const lock = new Redlock([client], { retryCount: -1 });
    lock.on("error", () => {});
    return { held: lock.acquire(["idle-redlock"], 10 * TTL_MS) };
  });
  yield {
    what: `1 leader and ${FOLLOWERS} followers, each with a backend of its own, ttl 10 s, idle`,
    result,
    beside: `redis-semaphore: ${semaphore}; redlock: ${redlock}`,
  };
}

export async function* many(server: RedisServer): AsyncGenerator<Row> {
  const stop = new AbortController();
  setMaxListeners(0, stop.signal);
  await using backend = await openRedis(server.url, { quarantine: false });
  const elections = Array.from(
    { length: MANY },
    (_, i) => new Election({ name: `e${i}`, backend, ttlMs: TTL_MS }),
  );
  const started = performance.now();
  const runs = elections.map((election) => serving(election, stop.signal));
  while (elections.some((election) => election.term === undefined)) await pause(20);
  const elected = performance.now() - started;
  const cpu = process.cpuUsage();
  const rate = await perSecond(server);
  const used = process.cpuUsage(cpu);
  yield {
    what: `${MANY} elections led by one process, ttl 10 s, idle`,
    result: `${rate}, ${((used.user + used.system) / 10 / MEASURE_MS).toFixed(1)} % of a core; all led after ${Math.round(elected)} ms`,
  };
  stop.abort();
  await Promise.all(runs);
  await Promise.all(elections.map((election) => election.close()));
}
