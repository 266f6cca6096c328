/** One clear error for each thing a user can get wrong, and no password in any of them. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { openRedis, redisBackend } from "../../src/backends/redis/index.js";
import { failure } from "../../src/backends/redis/failures.js";
import type { Backend } from "../../src/seam/backend.js";
import { isConclaveError } from "../../src/kit/errors.js";
import { startReplica, FAST, startCluster } from "../support/redis-groups.js";
import { until } from "../support/until.js";
import { hasRedis, RedisServer } from "../support/redis-server.js";

const PASSWORD = "correct-horse-battery";
const WRONG = "wrong-horse-battery";

async function refusal(backend: Backend): Promise<{ code: string; message: string }> {
  const candidacy = {
    election: "jobs",
    candidate: "me-1",
    value: "",
    ttlMs: 2_000,
    retryMs: 100,
    attemptMs: 3_000,
  };
  try {
    await backend.campaign(candidacy, { wait: false, signal: new AbortController().signal });
  } catch (error) {
    if (!isConclaveError(error)) throw error;
    for (const secret of [PASSWORD, WRONG]) expect(error.message).not.toContain(secret);
    return { code: error.code, message: error.message };
  } finally {
    await backend[Symbol.asyncDispose]();
  }
  throw new Error("it was not refused");
}

describe.skipIf(!hasRedis())("errors", () => {
  let server: RedisServer;
  let locked: RedisServer;
  beforeAll(async () => {
    server = await RedisServer.start({
      args: FAST,
      acl: [
        `user noeval on >${PASSWORD} ~* &* +@all -eval -evalsha`,
        `user nokeys on >${PASSWORD} ~other:* &* +@all`,
      ],
    });
    locked = await RedisServer.start({ password: PASSWORD });
  });
  afterAll(async () => {
    await server?.stop();
    await locked?.stop();
  });

  it("wrong password, by URL and by both kinds of client", async () => {
    const { port } = locked;
    const backends = [
      await openRedis(`redis://:${WRONG}@127.0.0.1:${port}`),
      redisBackend({ client: new Redis({ port, password: WRONG, lazyConnect: true }) }),
      redisBackend({ client: createClient({ socket: { port }, password: WRONG }) }),
    ];
    for (const backend of backends) {
      const error = await refusal(backend);
      expect(error).toMatchObject({ code: "forbidden" });
      expect(error.message).toMatch(/WRONGPASS.*check user name and password/);
    }
  });

  it("no password", async () => {
    const error = await refusal(await openRedis(`redis://127.0.0.1:${locked.port}`));
    expect(error).toMatchObject({ code: "forbidden" });
    expect(error.message).toMatch(/NOAUTH.*REDIS_PASSWORD/);
  });

  it("unknown host, and nobody there", async () => {
    const unknown = await refusal(await openRedis(`redis://:${PASSWORD}@nowhere.invalid`));
    expect(unknown).toMatchObject({ code: "unavailable" });
    expect(unknown.message).toMatch(/nowhere\.invalid/);
    const gone = await RedisServer.start();
    await gone.stop();
    const refused = await refusal(await openRedis(`redis://:${PASSWORD}@127.0.0.1:${gone.port}`));
    expect(refused.message).toMatch(/ECONNREFUSED/);
    const other = await refusal(redisBackend({ client: createClient({ socket: { port: gone.port } }) }));
    expect(other.message).toMatch(/ECONNREFUSED/);
  });

  it.each(["noeval", "nokeys"])("a user without rights: %s", async (user) => {
    const error = await refusal(await openRedis(`redis://${user}:${PASSWORD}@127.0.0.1:${server.port}`));
    expect(error).toMatchObject({ code: "forbidden" });
    expect(error.message).toMatch(/NOPERM.*docs\/backends\/redis\.md/);
  });

  it("a replica", async () => {
    const replica = await startReplica(server.port);
    try {
      const error = await refusal(await openRedis(replica.url, { quarantine: false }));
      expect(error).toMatchObject({ code: "unavailable" });
      expect(error.message).toMatch(/READONLY.*name the primary/);
    } finally {
      await replica.stop();
    }
  });

  it("no memory left, where nothing may be evicted", async () => {
    const full = await RedisServer.start({ args: ["--maxmemory", "1", "--maxmemory-policy", "noeviction"] });
    try {
      const error = await refusal(await openRedis(full.url, { quarantine: false }));
      expect(error).toMatchObject({ code: "unavailable" });
      expect(error.message).toMatch(/OOM.*out of memory/);
      expect(await full.cli("EXISTS", "conclave:{jobs}")).toBe("0");
    } finally {
      await full.stop();
    }
  });

  it("a disk that cannot be written", async () => {
    const broken = await RedisServer.start({ args: ["--dbfilename", "x.rdb"] });
    try {
      // A directory in its place: the file cannot be renamed to it.
      await mkdir(join(broken.directory, "x.rdb/full"), { recursive: true });
      await broken.cli("CONFIG", "SET", "save", "1 1");
      await broken.cli("BGSAVE");
      await until(async () =>
        (await broken.cli("INFO", "persistence")).includes("rdb_last_bgsave_status:err"),
      );
      const error = await refusal(await openRedis(broken.url, { quarantine: false }));
      expect(error).toMatchObject({ code: "unavailable" });
      expect(error.message).toMatch(/MISCONF.*free disk space/);
    } finally {
      await broken.stop();
    }
  });

  it("a key that holds something else", async () => {
    await server.cli("SET", "conclave:{jobs}", "a string");
    const error = await refusal(await openRedis(server.url, { quarantine: false }));
    expect(error).toMatchObject({ code: "conflict" });
    expect(await server.cli("GET", "conclave:{jobs}")).toBe("a string");
    await server.cli("DEL", "conclave:{jobs}");
  });

  it("a node of a cluster, named as if it were alone", async () => {
    const nodes = await startCluster();
    try {
      const all = await Promise.all(
        nodes.map(async (node) => {
          const backend = await openRedis(node.url, { quarantine: false });
          return refusal(backend).catch((error: Error) => ({ code: error.message, message: "" }));
        }),
      );
      // One of the three happens to have the slot.
      expect(all.filter(({ message }) => /MOVED.*cluster=true/.test(message))).toHaveLength(2);
    } finally {
      await Promise.all(nodes.map((node) => node.stop()));
    }
  }, 40_000);
});

describe("a server that is not there", () => {
  it.each([
    ["127.0.0.1:1", async () => openRedis("redis://127.0.0.1:1")],
    ["127.0.0.1:1,127.0.0.1:2", async () => openRedis("redis://127.0.0.1:1,127.0.0.1:2?cluster=true")],
    [
      "127.0.0.1:1",
      async () => redisBackend({ client: createClient({ socket: { host: "127.0.0.1", port: 1 } }) }),
    ],
  ])("%s: what cannot be reached and what to check; nothing was sent", async (hosts, open) => {
    const { code, message } = await refusal(await open());
    expect(code).toBe("unavailable");
    expect(message).toMatch(/cannot be reached \(.+\): check host, port, TLS settings and that it runs$/);
    expect(message).toContain(`Redis at ${hosts} cannot`);
  });

  it.each(["redis", "rediss"])("without ioredis: %s:// URLs need it", async (scheme) => {
    vi.doMock("ioredis", () => {
      throw new Error("Cannot find package 'ioredis'");
    });
    try {
      await expect(openRedis(`${scheme}://h`)).rejects.toThrow(`${scheme}:// URLs need the package ioredis`);
    } finally {
      vi.doUnmock("ioredis");
    }
  });

  // As Redis writes them: whoever does not know the word takes a refusal for an answer that did not come.
  it.each([
    ["READONLY You can't write against a read only replica.", /is a replica/],
    ["NOREPLICAS Not enough good replicas to write.", /too few replicas/],
    ["OOM command not allowed when used memory > 'maxmemory'.", /out of memory/],
    ["MISCONF Redis is configured to save RDB snapshots, but it is unable to persist.", /disk/],
    ["LOADING Redis is loading the dataset in memory", /still reading/],
    ["MASTERDOWN Link with MASTER is down", /lost its primary/],
    ["CLUSTERDOWN The cluster is down", /has no primary/],
    ["TRYAGAIN Multiple keys request during rehashing of slot", /moving this key/],
    ["BUSY Redis is busy running a script.", /another script/],
  ])("a refusal is known by its first word: %s", (text, advice) => {
    const error = failure('writing election "x"', new Error(text), []);
    expect([error.code, error.message]).toEqual(["unavailable", expect.stringMatching(advice)]);
    expect(error.message).toMatch(/nothing was written$/);
  });

  it("an answer that did not come is of no effect if it was only asked for", () => {
    const lost = new Error("Connection is closed.");
    expect(failure('reading election "x"', lost, []).message).not.toContain("took effect");
    expect(failure('writing election "x"', lost, []).message).toMatch(/whether it took effect is unknown$/);
  });
});

describe("URLs", () => {
  it.each([
    ["redis://user@host", /without a password/],
    ["redis://h1,h2", /cluster=true.*sentinel=/],
    ["redis://host/three", /number of a database/],
    ["redis://host?color=red", /no parameter "color"/],
    ["redis://host?ca=x.pem", /rediss/],
    ["redis://:p@ss@host", /%40/],
    ["redis://h:99999", /host:port/],
    ["redis://h1,h2?cluster=true&sentinel=x", /not both/],
    ["redis://host?layout=odd", /redlock/],
    ["redis://host?quarantine=maybe", /true or false/],
    ["rediss://host?cert=x", /both cert and key/],
    ["rediss://host?ca=/nowhere.pem", /cannot be read/],
  ])("%s is refused", async (url, message) => {
    await expect(openRedis(url)).rejects.toThrow(message);
  });
});
