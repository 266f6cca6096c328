import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { CallLimits, WatchEvent, WatchNotice } from "../../src/backends/etcd/client.js";
import { GrpcEtcdClient } from "../../src/backends/etcd/client/grpc-client.js";
import { parseEndpoint } from "../../src/backends/etcd/client/endpoint.js";
import { EtcdServer, hasEtcd } from "../support/etcd-server.js";
import { TcpProxy } from "../support/tcp-proxy.js";
import { until } from "../support/until.js";

const limits = (limitMs = 5_000): CallLimits => ({ signal: new AbortController().signal, limitMs });

describe.skipIf(!hasEtcd())("etcd client", () => {
  let server: EtcdServer;
  let client: GrpcEtcdClient;

  beforeAll(async () => {
    server = await EtcdServer.start();
    client = server.client();
  });

  afterAll(async () => {
    await client[Symbol.asyncDispose]();
    await server.stop();
  });

  it("puts, ranges and deletes", async () => {
    await client.put("kv/a", "schön", undefined, limits());
    const [kv] = await client.range({ key: "kv/a" }, limits());
    expect(kv).toMatchObject({ key: "kv/a", value: "schön", lease: 0n });
    await client.delete("kv/a", undefined, limits());
    expect(await client.range({ key: "kv/a" }, limits())).toEqual([]);
  });

  it("decides a transaction by its guards", async () => {
    const create = {
      when: [{ target: "create", key: "txn/a", value: 0n }],
      then: [{ kind: "put", key: "txn/a", value: "1" }],
      otherwise: [{ kind: "range", key: "txn/a" }],
    } as const;
    const first = await client.transaction(create, limits());
    expect(first.succeeded).toBe(true);
    const second = await client.transaction(create, limits());
    expect(second.succeeded).toBe(false);
    expect(second.results[0]?.kvs[0]).toMatchObject({ value: "1", createRevision: first.revision });
  });

  it("keeps lease ids beyond 2^53 exact", async () => {
    const { id, ttl } = await client.leaseGrant(5n, limits());
    expect(id > 2n ** 53n).toBe(true);
    expect(ttl).toBe(5n);
    expect((await client.leaseKeepAlive(id, limits())).ttl).toBe(5n);
    expect((await client.leaseTimeToLive(id, limits())).ttl).toBeGreaterThan(3n);
    await client.leaseRevoke(id, limits());
    await client.leaseRevoke(id, limits()); // gone already: no error
    expect((await client.leaseKeepAlive(id, limits())).ttl).toBe(0n);
  });

  it("says for certain that a lease is gone", async () => {
    await expect(client.put("kv/lease", "", 12345n, limits())).rejects.toMatchObject({ kind: "lost" });
  });

  it("tells the member's version and raft term", async () => {
    const status = await client.status(limits());
    expect(status.version).toMatch(/^3\./);
    expect(status.leader).toBe(status.memberId);
    expect(status.raftTerm > 0n).toBe(true);
  });

  it("ends a call when its signal aborts", async () => {
    const controller = new AbortController();
    const reason = new Error("enough");
    const call = client.range({ key: "x" }, { signal: controller.signal, limitMs: 5_000 });
    controller.abort(reason);
    await expect(call).rejects.toBe(reason);
  });

  it("carries many watches on one stream and leaves out what was filtered", async () => {
    const seen = new Map<string, WatchEvent[]>();
    const { revision } = await client.transaction(
      { when: [], then: [{ kind: "range", key: "w" }], otherwise: [] },
      limits(),
    );
    const stops = Array.from({ length: 500 }, (_, i) => {
      const key = `w/${i}`;
      return client.watch({ key, startRevision: revision + 1n, skip: "puts" }, (notice) => {
        if (notice.kind === "events") seen.set(key, [...(seen.get(key) ?? []), ...notice.events]);
      });
    });
    for (let i = 0; i < 500; i++) await client.put(`w/${i}`, "x", undefined, limits());
    for (let i = 0; i < 500; i++) await client.delete(`w/${i}`, undefined, limits());
    await until(() => seen.size === 500);
    expect([...seen.values()].every((events) => events.length === 1 && events[0]?.type === "delete")).toBe(
      true,
    );
    for (const stop of stops) stop();
  });

  it("resumes a watch after the connection broke, without a gap", async () => {
    const proxy = await TcpProxy.start({ port: parseEndpoint(server.endpoints[0]!).port });
    const watcher = new GrpcEtcdClient({ endpoints: [parseEndpoint(proxy.endpoint)] });
    const values: string[] = [];
    const { revision } = await client.transaction(
      { when: [], then: [{ kind: "range", key: "r" }], otherwise: [] },
      limits(),
    );
    watcher.watch({ key: "resume", startRevision: revision + 1n }, (notice) => {
      if (notice.kind === "events") values.push(...notice.events.map((event) => event.kv.value));
    });
    for (let i = 0; i < 60; i++) {
      await client.put("resume", String(i), undefined, limits());
      if (i % 20 === 10) proxy.cut();
      if (i === 30) {
        proxy.refuse();
        await client.put("resume", "while away", undefined, limits());
        proxy.heal();
      }
    }
    await until(() => values.includes("59"));
    expect(values).toEqual(Array.from({ length: 60 }, (_, i) => String(i)).toSpliced(31, 0, "while away"));
    await watcher[Symbol.asyncDispose]();
    await proxy.close();
  });

  it("says that history was compacted", async () => {
    await client.put("c", "1", undefined, limits());
    await client.put("c", "2", undefined, limits());
    const { revision } = await client.transaction(
      { when: [], then: [{ kind: "range", key: "c" }], otherwise: [] },
      limits(),
    );
    await server.etcdctl("compact", String(revision));
    const notices: WatchNotice[] = [];
    client.watch({ key: "c", startRevision: 1n }, (notice) => notices.push(notice));
    await until(() => notices.length > 0);
    expect(notices).toEqual([{ kind: "compacted", revision }]);
  });

  it(
    "finds a connection that fell silent by pings, and goes on when it is back",
    { timeout: 20_000 },
    async () => {
      const proxy = await TcpProxy.start({ port: parseEndpoint(server.endpoints[0]!).port });
      const watcher = new GrpcEtcdClient({ endpoints: [parseEndpoint(proxy.endpoint)] });
      const values: string[] = [];
      const { revision } = await watcher.transaction(
        { when: [], then: [{ kind: "range", key: "s" }], otherwise: [] },
        limits(),
      );
      watcher.watch({ key: "silent", startRevision: revision + 1n }, (notice) => {
        if (notice.kind === "events") values.push(...notice.events.map((event) => event.kv.value));
      });
      await client.put("silent", "before", undefined, limits());
      await until(() => values.length === 1);
      proxy.blackHole();
      await client.put("silent", "in the hole", undefined, limits());
      proxy.heal(); // the old connection stays dead, and nobody tells
      const started = performance.now();
      await until(() => values.length === 2, 15_000);
      expect(performance.now() - started).toBeLessThan(12_000);
      expect(values).toEqual(["before", "in the hole"]);
      await watcher[Symbol.asyncDispose]();
      await proxy.close();
    },
  );

  it("moves to another endpoint when one is silent", async () => {
    const hole = await TcpProxy.start({ port: 1 });
    hole.blackHole();
    const two = new GrpcEtcdClient({ endpoints: [hole.endpoint, server.endpoints[0]!].map(parseEndpoint) });
    const started = performance.now();
    await two.put("failover", "1", undefined, limits());
    expect(performance.now() - started).toBeLessThan(4_000);
    await two[Symbol.asyncDispose]();
    await hole.close();
  });

  it("survives answers of any size", async () => {
    const value = randomBytes(500_000).toString("hex");
    await client.put("big", value, undefined, limits());
    expect((await client.range({ key: "big" }, limits()))[0]?.value).toBe(value);
  });
});
