/** The user's own client, of each package: a short election, a handover, and nothing left open. */
import { Redis } from "ioredis";
import { Redis as Valkey } from "iovalkey";
import { createClient } from "redis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { redisBackend } from "../../src/backends/redis/index.js";
import type { RedisClient } from "../../src/backends/redis/index.js";
import { Election } from "../../src/election/election.js";
import { hasRedis, RedisServer } from "../support/redis-server.js";
import { until } from "../support/until.js";

const clients: readonly [string, (port: number) => RedisClient][] = [
  ["ioredis", (port) => new Redis({ port, lazyConnect: true })],
  [
    "ioredis with a prefix and a database",
    (port) => new Redis({ port, lazyConnect: true, keyPrefix: "app:", db: 3 }),
  ],
  ["iovalkey", (port) => new Valkey({ port, lazyConnect: true })],
  ["node-redis", (port) => createClient({ url: `redis://127.0.0.1:${port}` })],
  ["node-redis with a database", (port) => createClient({ socket: { port }, database: 2 })],
];

describe.skipIf(!hasRedis())("clients that are handed in", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await RedisServer.start();
  });
  afterAll(() => server?.stop());

  it.each(clients)("%s", async (_, connect) => {
    const options = { ttlMs: 20_000, closeBackend: true };
    const open = (id: string): Election =>
      new Election({
        ...options,
        name: "handed",
        id,
        backend: redisBackend({ client: connect(server.port), quarantine: false }),
      });
    await using first = open("first");
    await using second = open("second");
    const term = await first.campaign();
    const next = second.campaign();
    await term.proclaim("somewhere");
    await until(async () => (await server.cli("PUBSUB", "CHANNELS")) !== "");
    await term.resign();
    // By message: a poll would come after two seconds.
    const successor = await next;
    expect(successor.token).toBeGreaterThan(term.token);
    expect((await first.leader())?.candidate).toMatch(/^second/);
    expect(await second.backend.list?.({ signal: new AbortController().signal })).toEqual({
      names: ["handed"],
      complete: true,
    });
    await second.close();
    await first.close();
    await until(async () => !(await server.cli("CLIENT", "LIST")).match(/cmd=(evalsha|subscribe)/));
    await server.cli("FLUSHALL");
  });

  it("anything else is refused", () => {
    const almost = { duplicate: () => 1, connect: () => 1, subscribe: () => 1 };
    expect(() => redisBackend({ client: almost })).toThrow(/hand in one of ioredis, iovalkey or node-redis/);
  });
});
