/**
 * Z1: a server that is cut off from the ensemble's leader goes on answering its
 * clients' pings. Whoever takes those for renewals believes that it leads while
 * the next one does.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ZooKeeperConnection, ZooKeeperSession } from "../../src/backends/zookeeper/client.js";
import { parseEndpoint } from "../../src/backends/zookeeper/client/endpoint.js";
import { WireZooKeeperClient } from "../../src/backends/zookeeper/client/wire-client.js";
import { zookeeperBackend } from "../../src/backends/zookeeper/index.js";
import { Election } from "../../src/index.js";
import type { Backend } from "../../src/backend.js";
import { TcpProxy } from "../support/tcp-proxy.js";
import { until } from "../support/until.js";
import { hasZooKeeper, type ZooKeeperMember, ZooKeeperServer } from "../support/zookeeper-server.js";

const ROUNDS = process.env["CONCLAVE_LONG"] === "1" ? 30 : 1;
const TTL_MS = 6_000;
const never = new AbortController().signal;

/** A client as they are usually written: it leads while its pings are answered. */
class PingTruster {
  readonly #session: ZooKeeperSession;
  readonly #connection: ZooKeeperConnection;
  #answered = performance.now();
  #stopped = false;

  private constructor(session: ZooKeeperSession, connection: ZooKeeperConnection) {
    this.#session = session;
    this.#connection = connection;
    void this.#ping();
  }

  static async lead(host: string, parent: string): Promise<PingTruster> {
    const client = new WireZooKeeperClient({ endpoints: [parseEndpoint(host)] });
    const limits = { signal: never, limitMs: 5_000 };
    const session = await client.openSession(TTL_MS, limits);
    const connection = await session.connected(limits);
    await connection.create(parent, "", "container", limits).catch(() => {});
    const name = `${parent}/_c_${"0".repeat(32)}-latch-`;
    await connection.create(name, "pings", "ephemeral-sequential", limits);
    return new PingTruster(session, connection);
  }

  get believes(): boolean {
    return performance.now() - this.#answered < TTL_MS;
  }

  async #ping(): Promise<void> {
    while (!this.#stopped) {
      const asked = performance.now();
      try {
        await this.#connection.ping({ signal: never, limitMs: 1_000 });
        this.#answered = asked;
      } catch {
        // not answered
      }
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
  }

  stop(): void {
    this.#stopped = true;
    this.#session.abandon();
  }
}

describe.skipIf(!hasZooKeeper())("a follower that is cut off from its leader, but not from us", () => {
  const proxies = new Map<string, TcpProxy>();
  let server: ZooKeeperServer;

  beforeAll(async () => {
    server = await ZooKeeperServer.start({
      members: 3,
      // It serves its clients for 20 ticks, longer than a session lasts.
      config: ["syncLimit=20"],
      quorumPort: async (from, to, real) => {
        const proxy = await TcpProxy.start({ port: real });
        proxies.set(`${from}-${to}`, proxy);
        return proxy.port;
      },
    });
  }, 120_000);
  afterAll(async () => {
    await server?.stop();
    await Promise.all([...proxies.values()].map((proxy) => proxy.close()));
  });

  const open = (member: ZooKeeperMember): Backend =>
    zookeeperBackend({ hosts: member.host, tickMs: server.tickMs, env: {}, warn: () => {} });

  it(
    `${ROUNDS} times: our old leader's term is over before the next one's begins; one that trusts pings overlaps`,
    { timeout: ROUNDS * 60_000 + 60_000 },
    async () => {
      const trusted: number[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        await server.ready();
        const leader = await server.leader();
        const [cutOff, other] = server.members.filter((member) => member !== leader);
        const [near, far] = [open(cutOff!), open(other!)];
        const naive = await PingTruster.lead(cutOff!.host, `/naive-${round}`);
        const name = `cut-${round}`;
        const first = new Election({ name, backend: near, ttlMs: TTL_MS });
        const second = new Election({ name, backend: far, ttlMs: TTL_MS });
        const contrast = new Election({ name: `naive-${round}`, backend: far, ttlMs: TTL_MS });
        try {
          const term = await first.campaign();
          const next = second.campaign();
          const afterNaive = contrast.campaign();
          await until(async () => (await second.leader())?.token === term.token);
          // Long enough for a few renewals, at another phase each time.
          await new Promise((resolve) => setTimeout(resolve, 500 + Math.random() * 2_500));
          expect(term.held).toBe(true);
          proxies.get(`${cutOff!.id}-${leader.id}`)!.blackHole();
          const overlapped = next.then((won) => ({ old: term.held, next: won.held }));
          expect(await overlapped).toEqual({ old: false, next: true });
          await afterNaive;
          const from = performance.now();
          await until(() => !naive.believes, 60_000);
          trusted.push(performance.now() - from);
        } finally {
          naive.stop();
          for (const proxy of proxies.values()) proxy.heal();
          await Promise.all([first.close(), second.close(), contrast.close()]);
          await Promise.all([near[Symbol.asyncDispose](), far[Symbol.asyncDispose]()]);
        }
      }
      const seconds = trusted.map((ms) => (ms / 1000).toFixed(1)).join(" ");
      console.log(`two leaders by a client that trusts its pings, in seconds: ${seconds}`);
      expect(trusted.filter((ms) => ms > 100).length).toBe(ROUNDS);
    },
  );
});
