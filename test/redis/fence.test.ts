/** The fence in Redis: older tokens are refused in the same step as the write. */
import { Redis } from "ioredis";
import { createClient } from "redis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { RedisFence } from "../../src/backends/redis/index.js";
import { hasRedis, RedisServer } from "../support/redis-server.js";

const bearer = (token: bigint, held = true) => ({
  token,
  signal: new AbortController().signal,
  assertHeld: () => {
    if (!held) throw new Error("not held");
  },
});

describe.skipIf(!hasRedis())("fence in Redis", () => {
  let server: RedisServer;
  let fence: RedisFence;
  beforeAll(async () => {
    server = await RedisServer.start();
  });
  afterAll(() => server?.stop());
  beforeEach(async () => {
    await server.cli("FLUSHALL");
    fence = new RedisFence({
      client: new Redis({ port: server.port, lazyConnect: true }),
      key: "fence:{orders}",
    });
  });
  afterEach(() => fence[Symbol.asyncDispose]());

  it("writes, answers, and refuses an older token without writing", async () => {
    const newer = fence.bind(bearer(12n));
    expect(await newer.command("SET", "order:{orders}", "paid")).toBe("OK");
    expect(await newer.command("INCRBY", "count:{orders}", 5)).toBe(5);
    await expect(fence.bind(bearer(11n)).command("SET", "order:{orders}", "open")).rejects.toMatchObject({
      code: "stale-leader",
      highest: 12n,
    });
    expect(await server.cli("GET", "order:{orders}")).toBe("paid");
    await newer.check();
    await expect(fence.check(9n)).rejects.toMatchObject({ code: "stale-leader" });
  });

  it("compares tokens by number, beyond what Lua can count", async () => {
    await fence.check(9_007_199_254_740_993n);
    await expect(fence.check(9_007_199_254_740_992n)).rejects.toMatchObject({ code: "stale-leader" });
    await fence.check(9_007_199_254_740_994n);
    await fence.check(18_000_000_000_000_000_000n);
    await expect(fence.check(9n)).rejects.toMatchObject({ code: "stale-leader" });
  });

  it("runs a script of the user's own with its own KEYS and ARGV", async () => {
    const script = "redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) return #KEYS .. ' ' .. #ARGV";
    const fenced = { script, keys: ["h:{orders}"], args: ["status", "sent"] };
    expect(await fence.bind(bearer(3n)).eval(fenced)).toBe("1 2");
    await fence.check(4n);
    await expect(fence.bind(bearer(3n)).eval({ ...fenced, args: ["status", "late"] })).rejects.toMatchObject({
      highest: 4n,
    });
    expect(await server.cli("HGET", "h:{orders}", "status")).toBe("sent");
  });

  it("asks the clock first: whoever does not lead writes nothing", async () => {
    await expect(fence.bind(bearer(99n, false)).command("SET", "k:{orders}", "x")).rejects.toThrow(
      "not held",
    );
    expect(await server.cli("EXISTS", "k:{orders}")).toBe("0");
  });

  it("of many who write at once with rising tokens, none is undone by an older one", async () => {
    const other = new RedisFence({
      client: createClient({ socket: { port: server.port } }),
      key: "fence:{orders}",
    });
    const script =
      "local last = tonumber(redis.call('GET', KEYS[1]) or '0') redis.call('SET', KEYS[1], ARGV[1]) return last > tonumber(ARGV[1]) and 1 or 0";
    const writes = Array.from({ length: 200 }, (_, i) =>
      (i % 2 === 0 ? fence : other)
        .eval(BigInt(1 + ((i * 7919) % 200)), {
          script,
          keys: ["last:{orders}"],
          args: [1 + ((i * 7919) % 200)],
        })
        .catch((error: unknown) => error),
    );
    const answers = await Promise.all(writes);
    expect(answers.filter((answer) => answer === 1)).toEqual([]);
    expect(answers.filter((answer) => answer === 0).length).toBeGreaterThan(0);
    expect(await server.cli("GET", "last:{orders}")).toBe("200");
    await other[Symbol.asyncDispose]();
  });

  it("leaves a key alone that holds something else", async () => {
    await server.cli("HSET", "fence:{orders}", "a", "b");
    await expect(fence.check(1n)).rejects.toMatchObject({ code: "conflict" });
  });
});
