/** Sentinel, Cluster and TLS, by URL and with each client that is handed in. */
import { Cluster, Redis } from "ioredis";
import { createCluster, createSentinel } from "redis";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { openRedis, redisBackend } from "../../src/backends/redis/index.js";
import { Election } from "../../src/election/election.js";
import type { Backend } from "../../src/seam/backend.js";
import { RedisSentinels, startCluster } from "../support/redis-groups.js";
import { hasRedis, RedisServer } from "../support/redis-server.js";
import { until } from "../support/until.js";

async function handover(open: () => Backend | Promise<Backend>, name: string): Promise<void> {
  const elections = await Promise.all(
    ["first", "second"].map(
      async (id) => new Election({ name, id, backend: await open(), ttlMs: 10_000, closeBackend: true }),
    ),
  );
  onTestFinished(async () => void (await Promise.all(elections.map((election) => election.close()))));
  const [first, second] = elections;
  const term = await first!.campaign();
  const next = second!.campaign();
  await term.resign();
  expect((await next).token).toBeGreaterThan(term.token);
  const { names } = await second!.backend.list!({ signal: new AbortController().signal });
  expect(names).toContain(name);
}

describe.skipIf(!hasRedis())("cluster of three", () => {
  let nodes: RedisServer[];
  beforeAll(async () => {
    nodes = await startCluster();
  }, 60_000);
  afterAll(async () => void (await Promise.all((nodes ?? []).map((node) => node.stop()))));

  const quarantine = false;
  const kinds: [string, () => Backend | Promise<Backend>][] = [
    [
      "by URL",
      () =>
        openRedis(`redis://${nodes.map(({ port }) => `127.0.0.1:${port}`).join(",")}?cluster=true`, {
          quarantine,
        }),
    ],
    [
      "ioredis",
      () =>
        redisBackend({
          client: new Cluster([{ port: nodes[0]!.port, host: "127.0.0.1" }], { lazyConnect: true }),
          quarantine,
        }),
    ],
    [
      "node-redis",
      () =>
        redisBackend({
          client: createCluster({
            rootNodes: nodes.map(({ port }) => ({ url: `redis://127.0.0.1:${port}` })),
          }),
          quarantine,
        }),
    ],
  ];

  it.each(kinds)("%s", async (kind, open) => {
    // Several, so that every node has some.
    for (const name of ["a", "b{x}", "c"]) await handover(open, `${name} ${kind}`);
  });

  it("R7: a node that is stopped fails calls for its keys, and they go on when it does", async () => {
    const backend = await openRedis(`redis://127.0.0.1:${nodes[0]!.port}?cluster=true`, { quarantine });
    onTestFinished(() => backend[Symbol.asyncDispose]());
    const records = backend.records;
    const signal = (ms: number): AbortSignal => AbortSignal.timeout(ms);
    const write = (name: string): Promise<unknown> =>
      records.write(name, null, "x", { signal: signal(1_000) });
    await write("warm");
    const stopped = nodes[2]!;
    stopped.signal("SIGSTOP");
    const names = Array.from({ length: 12 }, (_, i) => `n${i}`);
    const answers = await Promise.allSettled(names.map(write));
    stopped.signal("SIGCONT");
    expect(answers.some(({ status }) => status === "rejected")).toBe(true);
    for (const name of names)
      await until(
        async () =>
          (await records.read(name, { signal: signal(2_000) }).catch(() => null)) !== null ||
          (await write(name).then(
            () => true,
            () => false,
          )),
        20_000,
      );
  }, 60_000);

  it("a cluster's quarantine is kept in the record: no script touches two slots", async () => {
    const backend = await openRedis(`redis://127.0.0.1:${nodes[0]!.port}?cluster=true`);
    onTestFinished(() => backend[Symbol.asyncDispose]());
    const election = new Election({ name: "quarantined", backend, ttlMs: 1_000 });
    onTestFinished(() => election.close());
    expect((await election.campaign()).held).toBe(true);
  });
});

describe.skipIf(!hasRedis())("Sentinel", () => {
  let group: RedisSentinels;
  beforeAll(async () => {
    group = await RedisSentinels.start();
  }, 60_000);
  afterAll(() => group?.stop());

  it("by URL, ioredis and node-redis", async () => {
    const quarantine = false;
    await handover(() => openRedis(group.url, { quarantine }), "by URL");
    await handover(
      () =>
        redisBackend({
          client: new Redis({ sentinels: group.sentinels, name: "main", lazyConnect: true }),
          quarantine,
        }),
      "ioredis",
    );
    await handover(
      () =>
        redisBackend({
          client: createSentinel({ name: "main", sentinelRootNodes: group.sentinels }),
          quarantine,
        }),
      "node-redis",
    );
  }, 30_000);

  it("a leader keeps its term over a failover that loses nothing", async () => {
    const ttlMs = 15_000;
    const election = new Election({
      name: "kept",
      backend: await openRedis(group.url, { quarantine: false }),
      ttlMs,
      closeBackend: true,
    });
    onTestFinished(() => election.close());
    const term = await election.campaign();
    const old = await group.primary();
    await until(async () => {
      const copies = await Promise.all(
        group.servers.map((server) => server.cli("HGET", "conclave:{kept}", "v")),
      );
      return new Set(copies).size === 1;
    });
    await old.kill();
    const promoted = await group.promoted(old);
    const before = await promoted.cli("HGET", "conclave:{kept}", "v");
    await until(async () => (await promoted.cli("HGET", "conclave:{kept}", "v")) !== before, ttlMs);
    expect(term.held).toBe(true);
  }, 60_000);
});

describe.skipIf(!hasRedis())("TLS and password", () => {
  it("rediss:// with an authority of its own; refused without it", async () => {
    const server = await RedisServer.start({ tls: true, password: "correct-horse-battery" });
    onTestFinished(() => server.stop());
    await handover(() => openRedis(server.url, { quarantine: false }), "secure");
    const backend = await openRedis(server.url.replace(/\?.*/, ""), { quarantine: false });
    onTestFinished(() => backend[Symbol.asyncDispose]());
    await expect(backend.records.read("x", { signal: AbortSignal.timeout(5_000) })).rejects.toThrow(
      /self-signed|certificate/,
    );
  });
});
