/** Servers that were restarted or promoted and have forgotten a leader (R1, R2), are cut off (R3), or lose messages and scripts (R8, R9). */
import { describe, expect, it, onTestFinished } from "vitest";
import { openRedis } from "../../src/backends/redis/index.js";
import type { RedisOptions } from "../../src/backends/redis/index.js";
import { Election } from "../../src/election/election.js";
import { FAST, startReplica } from "../support/redis-groups.js";
import { hasRedis, RedisServer } from "../support/redis-server.js";
import type { RedisServerOptions } from "../support/redis-server.js";
import { TcpProxy } from "../support/tcp-proxy.js";
import { until } from "../support/until.js";

async function start(options: RedisServerOptions = {}): Promise<RedisServer> {
  const server = await RedisServer.start(options);
  onTestFinished(() => server.stop());
  return server;
}

async function candidate(
  url: string,
  options: RedisOptions & { ttlMs: number; lines?: string[] },
): Promise<Election> {
  const { ttlMs, lines, ...rest } = options;
  const say = (text: string): void => void lines?.push(text);
  const logger = { debug: () => {}, info: () => {}, warn: say, error: say };
  const election = new Election({
    name: "jobs",
    backend: await openRedis(url, rest),
    ttlMs,
    closeBackend: true,
    logger,
  });
  onTestFinished(() => election.close());
  return election;
}

describe.skipIf(!hasRedis())("restarts and failovers", () => {
  it.each([true, false])(
    "R1: a promoted replica that never got the grant; quarantine %s",
    async (quarantine) => {
      const primary = await start({ args: FAST });
      const wire = await TcpProxy.start({ port: primary.port });
      onTestFinished(() => wire.close());
      const replica = await startReplica(wire.port);
      onTestFinished(() => replica.stop());
      wire.blackHole();
      const ttlMs = 3_000;
      const a = await candidate(primary.url, { ttlMs, quarantine: false });
      const b = await candidate(replica.url, { ttlMs, quarantine });
      const first = await a.campaign();
      await primary.kill();
      await replica.cli("REPLICAOF", "NO", "ONE");
      const second = await b.campaign();
      // Without quarantine two lead at once: that is what it is for.
      expect(first.held).toBe(!quarantine);
      expect(second.token).toBeGreaterThan(first.token);
    },
  );

  it("R2: a server that was restarted without its data elects nobody before it has been up for a ttl", async () => {
    const server = await start();
    const ttlMs = 3_000;
    const a = await candidate(server.url, { ttlMs });
    const term = await a.campaign();
    const lines: string[] = [];
    const b = await candidate(server.url, { ttlMs, lines });
    await server.kill();
    await server.launch();
    const next = await b.campaign();
    const up = Number(/uptime_in_seconds:(\d+)/.exec(await server.cli("INFO", "server"))![1]);
    expect(up).toBeGreaterThanOrEqual(ttlMs / 1000);
    expect(term.held).toBe(false);
    expect(next.token).toBeGreaterThan(term.token);
    expect(lines.join("\n")).toMatch(
      /may have forgotten a leader that still acts; leadership is granted in \d+ ms/,
    );
    expect(lines.join("\n")).toMatch(/keeps nothing on disk/);
  });

  it("a leader that renewed after a failover hands over at once", async () => {
    const primary = await start({ args: FAST });
    const replica = await startReplica(primary.port);
    onTestFinished(() => replica.stop());
    await until(
      async () => Number(/uptime_in_seconds:(\d+)/.exec(await primary.cli("INFO", "server"))![1]) >= 2,
    );
    // One address for both, as a load balancer would have it.
    const ttlMs = 20_000;
    const a = await candidate(primary.url, { ttlMs: 2_000 });
    const term = await a.campaign();
    await until(async () => (await replica.cli("HGET", "conclave:{jobs}", "v")) !== "");
    await replica.cli("REPLICAOF", "NO", "ONE");
    const signal = new AbortController().signal;
    // The leader's own next write, on the new primary.
    const there = await openRedis(replica.url);
    onTestFinished(() => there[Symbol.asyncDispose]());
    expect(
      await there.release!({ election: "jobs", candidate: a.candidate, token: term.token }, { signal }),
    ).toBe("released");
    const b = await candidate(replica.url, { ttlMs });
    const asked = performance.now();
    expect((await b.campaign()).token).toBeGreaterThan(term.token);
    expect(performance.now() - asked).toBeLessThan(ttlMs / 2);
  });

  it("R3: a primary that has lost its replicas refuses renewals, and the term ends", async () => {
    const primary = await start({
      args: [...FAST, "--min-replicas-to-write", "1", "--min-replicas-max-lag", "1"],
    });
    const wire = await TcpProxy.start({ port: primary.port });
    onTestFinished(() => wire.close());
    const replica = await startReplica(wire.port);
    onTestFinished(() => replica.stop());
    const lines: string[] = [];
    const a = await candidate(primary.url, { ttlMs: 2_000, quarantine: false, lines });
    const term = await a.campaign();
    wire.blackHole();
    await until(() => !term.held, 20_000);
    expect(lines.join("\n")).toMatch(/NOREPLICAS.*min-replicas-to-write/);
  });

  it("R4: what the server may do to elections is warned of, once", async () => {
    const primary = await start({
      args: [...FAST, "--maxmemory", "50mb", "--maxmemory-policy", "allkeys-lru"],
    });
    const replica = await startReplica(primary.port);
    onTestFinished(() => replica.stop());
    const lines: string[] = [];
    const a = await candidate(primary.url, { ttlMs: 2_000, quarantine: false, lines });
    await (await a.campaign()).resign();
    await until(() => lines.some((line) => line.includes("min-replicas-to-write")));
    await (await a.campaign()).resign();
    expect(lines.filter((line) => line.includes("allkeys-lru"))).toHaveLength(1);
    expect(lines.filter((line) => line.includes("min-replicas-to-write"))).toHaveLength(1);
  });

  it("a server that does not tell its replication id: quarantine is off, and that is said", async () => {
    const server = await start({ acl: ["user app on >some-long-secret ~* &* +@all -info"] });
    const lines: string[] = [];
    const a = await candidate(`redis://app:some-long-secret@127.0.0.1:${server.port}`, {
      ttlMs: 5_000,
      lines,
    });
    await a.campaign();
    await until(() => lines.some((line) => line.includes("does not tell its replication id")));
  });

  it("R8: scripts that the server has forgotten are sent again", async () => {
    const server = await start();
    const a = await candidate(server.url, { ttlMs: 1_500, quarantine: false });
    const term = await a.campaign();
    await server.cli("SCRIPT", "FLUSH");
    await term.proclaim("still here");
    expect(await server.cli("HGET", "conclave:{jobs}", "r")).toContain("still here");
    expect(term.held).toBe(true);
  });

  it("R9: connections that are dead without a word are replaced, and messages arrive again", async () => {
    const server = await start();
    const wire = await TcpProxy.start({ port: server.port });
    onTestFinished(() => wire.close());
    const a = await candidate(server.url, { ttlMs: 20_000, quarantine: false });
    const b = await candidate(`redis://127.0.0.1:${wire.port}`, { ttlMs: 20_000, quarantine: false });
    const term = await a.campaign();
    const next = b.campaign();
    const listener = async (): Promise<string | undefined> =>
      /^id=(\d+)/.exec(await server.cli("CLIENT", "LIST", "TYPE", "pubsub"))?.[1];
    await until(async () => (await listener()) !== undefined);
    const before = await listener();
    wire.blackHole();
    wire.heal();
    await until(async () => ![before, undefined].includes(await listener()), 40_000);
    await term.resign();
    expect((await next).token).toBeGreaterThan(term.token);
  }, 60_000);
});
