/**
 * Faults on real servers. CONCLAVE_LONG=1 runs the long form: as many rounds as
 * the promise was made for.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { once, setMaxListeners } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { etcdBackend } from "../../src/backends/etcd/index.js";
import type { GrpcEtcdClient } from "../../src/backends/etcd/client/grpc-client.js";
import { parseEndpoint } from "../../src/backends/etcd/client/endpoint.js";
import { Election } from "../../src/core/election.js";
import { EtcdServer, hasEtcd, type EtcdMember } from "../support/etcd-server.js";
import { TcpProxy } from "../support/tcp-proxy.js";
import { until } from "../support/until.js";

const TTL = 3_000;
const LONG = process.env["CONCLAVE_LONG"] === "1";
const KILLS = LONG ? 20 : 2;
const STOPS = LONG ? 10 : 1;
const limits = { signal: new AbortController().signal, limitMs: 5_000 };
setMaxListeners(0, limits.signal);
const cleanups: (() => Promise<unknown>)[] = [];
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function cleanUp(): Promise<void> {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
}

function stand(name: string, endpoints: readonly string[]): Election {
  const election = new Election({
    name,
    backend: etcdBackend({ endpoints, env: {} }),
    ttlMs: TTL,
    closeBackend: true,
  });
  cleanups.push(() => election.close());
  return election;
}

const proxyFor = async (endpoint: string): Promise<TcpProxy> => {
  const proxy = await TcpProxy.start({ port: parseEndpoint(endpoint).port });
  cleanups.push(() => proxy.close());
  return proxy;
};

/**
 * Candidates that stand for ever. `held` goes from true to false once in a
 * term, so two terms overlap exactly if one is held when another begins.
 */
class Contest {
  readonly elections: readonly Election[];
  readonly tokens: bigint[] = [];
  /** Terms that were held when another began, though the store had not been told to end them. */
  overlaps = 0;
  /** The same after the store itself removed the first one's key: known only at the watch event. */
  removals = 0;
  readonly #stop = new AbortController();
  readonly #runs: Promise<void>[];

  constructor(elections: readonly Election[]) {
    this.elections = elections;
    for (const election of elections) {
      election.on("elected", ({ term }) => {
        this.tokens.push(term.token);
        for (const other of elections) {
          if (other === election || !other.leading) continue;
          void other.term!.ended.then(({ reason }) =>
            reason === "revoked" ? this.removals++ : this.overlaps++,
          );
        }
      });
    }
    this.#runs = elections.map((election) =>
      election.run(
        (term) => new Promise((resolve) => term.signal.addEventListener("abort", () => resolve())),
        {
          signal: this.#stop.signal,
        },
      ),
    );
    cleanups.push(() => this.end());
  }

  get leader(): Election | undefined {
    return this.elections.find((election) => election.leading);
  }

  async end(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#runs);
  }
}

describe.skipIf(!hasEtcd())("etcd: faults, one member", () => {
  let server: EtcdServer;
  let client: GrpcEtcdClient;

  beforeAll(async () => {
    server = await EtcdServer.start();
    client = server.client();
  });
  afterEach(cleanUp);
  afterAll(async () => {
    await client[Symbol.asyncDispose]();
    await server.stop();
  });

  const keysOf = async (name: string): Promise<readonly string[]> =>
    (await client.range({ key: `${name}/`, rangeEnd: `${name}0`, sort: "oldest-first" }, limits)).map(
      (kv) => kv.key,
    );

  it("a leader in a black hole stops before the next one starts: 30 times", { timeout: 60_000 }, async () => {
    const gaps = await Promise.all(
      Array.from({ length: 30 }, async (_, i) => {
        await pause(i * 50);
        const proxy = await proxyFor(server.endpoints[0]!);
        const [a, b] = [stand(`/hole/${i}`, [proxy.endpoint]), stand(`/hole/${i}`, server.endpoints)];
        const term = await a.campaign();
        let endedAt = Infinity;
        void term.ended.then(() => (endedAt = performance.now()));
        const next = b.campaign();
        await until(async () => (await keysOf(`/hole/${i}`)).length === 2);
        await pause(Math.random() * TTL);
        proxy.blackHole();
        const second = await next;
        const overlap = term.held;
        expect(second.held).toBe(true);
        expect(overlap).toBe(false);
        expect(second.token > term.token).toBe(true);
        return performance.now() - endedAt;
      }),
    );
    expect(Math.min(...gaps)).toBeGreaterThan(0);
  });

  it("rides out a cut connection and a slow one", { timeout: 60_000 }, async () => {
    const proxy = await proxyFor(server.endpoints[0]!);
    const election = stand("/cut", [proxy.endpoint]);
    const term = await election.campaign();
    for (let i = 0; i < 10; i++) {
      proxy.cut();
      await pause(100);
    }
    proxy.delay({ toServer: 100, toClient: 100 });
    await pause(TTL);
    expect(term.held).toBe(true);
    proxy.delay({});
  });

  it("survives a restart of the server with its data; tokens rise", { timeout: 60_000 }, async () => {
    const alone = await EtcdServer.start();
    cleanups.push(() => alone.stop());
    const contest = new Contest([stand("/restart", alone.endpoints), stand("/restart", alone.endpoints)]);
    await until(() => contest.leader !== undefined);
    for (let i = 0; i < 2; i++) {
      await alone.members[0]!.kill();
      alone.members[0]!.start();
      await alone.ready();
      await until(() => contest.leader !== undefined, 3 * TTL);
    }
    await contest.end();
    expect(contest.overlaps).toBe(0);
    expect(contest.tokens).toEqual([...contest.tokens].sort((x, y) => (x < y ? -1 : 1)));
  });

  it(
    "a waiting candidate stopped for two ttls never leads on its dead key",
    { timeout: 60_000 },
    async () => {
      const name = "/stopped";
      const first = stand(name, server.endpoints);
      const term = await first.campaign();
      const { child, events } = candidate(server.endpoints.join(","), name);
      await until(async () => (await keysOf(name)).length === 2);
      const deadKey = (await keysOf(name))[1];
      child.kill("SIGSTOP");
      await pause(500);
      await term.resign();
      await pause(2 * TTL - 500);
      const second = stand(name, server.endpoints);
      const newTerm = await second.campaign(); // its key is gone with its lease
      expect(await keysOf(name)).not.toContain(deadKey);
      child.kill("SIGCONT");
      await until(async () => (await keysOf(name)).length === 2, 3 * TTL); // it stands again, behind
      expect(events.filter((event) => event.event === "elected")).toEqual([]);
      expect(newTerm.held).toBe(true);
      await newTerm.resign();
      await until(() => events.some((event) => event.event === "elected"), 3 * TTL);
      expect(events.find((event) => event.event === "elected")?.held).toBe(true);
    },
  );

  it("a killed leader is followed within its ttl and a moment", { timeout: 60_000 }, async () => {
    const name = "/killed";
    const { child, events } = candidate(server.endpoints.join(","), name);
    await until(() => events.some((event) => event.event === "elected"));
    const next = stand(name, server.endpoints).campaign();
    await until(async () => (await keysOf(name)).length === 2);
    child.kill("SIGKILL");
    const started = performance.now();
    expect((await next).held).toBe(true);
    expect(performance.now() - started).toBeLessThan(TTL + 3_000);
  });
});

interface Said {
  readonly event: string;
  readonly held?: boolean;
}

/** Needs `npm run build`, which `make test` does first. */
function candidate(endpoints: string, name: string): { child: ChildProcess; events: Said[] } {
  const script = fileURLToPath(new URL("fixtures/candidate.mjs", import.meta.url));
  const child = spawn(process.execPath, [script, endpoints, name, String(TTL)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const events: Said[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => events.push(JSON.parse(line) as Said));
  cleanups.push(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, "exit");
    child.kill("SIGKILL");
    await exited;
  });
  return { child, events };
}

describe.skipIf(!hasEtcd())("etcd: faults, three members", () => {
  let server: EtcdServer;

  beforeAll(async () => {
    server = await EtcdServer.start({ members: 3 });
  });
  afterEach(cleanUp);
  afterAll(() => server.stop());

  /** One fault: at most one change of leader, and a leader again within three ttls. */
  async function round(contest: Contest, fault: (member: EtcdMember) => Promise<void>): Promise<void> {
    await until(() => contest.leader !== undefined, 3 * TTL);
    const before = contest.tokens.length;
    const member = await server.leader();
    await fault(member);
    await until(() => contest.leader !== undefined, 3 * TTL);
    await pause(500);
    expect(contest.tokens.length - before).toBeLessThanOrEqual(1);
    expect(contest.overlaps).toBe(0);
  }

  const threeCandidates = (name: string): Contest =>
    new Contest(
      [0, 1, 2].map((i) => stand(name, [...server.endpoints.slice(i), ...server.endpoints.slice(0, i)])),
    );

  it(
    `cluster leader killed ${KILLS} times and restarted with its data`,
    { timeout: KILLS * 25_000 },
    async () => {
      const contest = threeCandidates("/kills");
      for (let i = 0; i < KILLS; i++) {
        await round(contest, async (member) => {
          await member.kill();
          await pause(TTL);
          member.start();
        });
        await server.ready();
      }
      await contest.end();
    },
  );

  // Two faults in one: the old leader of Debian's etcd, when it wakes up, can revoke leases that the new one keeps.
  it(`cluster leader stopped ${STOPS} times, and woken again`, { timeout: STOPS * 30_000 }, async () => {
    const contest = threeCandidates("/stops");
    for (let i = 0; i < STOPS; i++) {
      let stopped: EtcdMember | undefined;
      await round(contest, async (member) => {
        stopped = member;
        member.signal("SIGSTOP");
        await pause(2 * TTL);
      });
      await round(contest, async () => {
        stopped?.signal("SIGCONT");
        await server.ready();
      });
    }
    await contest.end();
    if (contest.removals > 0)
      console.warn(`${contest.removals} terms overlapped after etcd revoked a live lease`);
  });

  it("a candidate cut from one member, then from all", { timeout: 60_000 }, async () => {
    const proxies = await Promise.all(server.endpoints.map((endpoint) => proxyFor(endpoint)));
    const a = stand(
      "/cuts",
      proxies.map((proxy) => proxy.endpoint),
    );
    const b = stand("/cuts", server.endpoints);
    const only = new Contest([a]);
    await until(() => a.leading);
    const contest = new Contest([b]);
    for (const proxy of proxies) {
      proxy.blackHole();
      await pause(TTL);
      proxy.heal();
    }
    expect([a.leading, only.tokens.length]).toEqual([true, 1]); // one member less: no change at all
    const term = a.term!;
    let overlap = false;
    b.on("elected", () => (overlap ||= term.held || a.leading));
    for (const proxy of proxies) proxy.blackHole();
    await until(() => b.leading, 3 * TTL);
    for (const proxy of proxies) proxy.heal();
    await pause(1_000);
    expect(overlap).toBe(false);
    expect([a.leading, b.leading]).toEqual([false, true]);
    await contest.end();
    await until(() => a.leading, 3 * TTL); // not stuck: it stood again
  });
});
