/** Faults on one real server. */
import { spawn, type ChildProcess } from "node:child_process";
import { once, setMaxListeners } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { GrpcEtcdClient } from "../../src/backends/etcd/client/grpc-client.js";
import { Bench, TTL } from "../support/contest.js";
import { EtcdServer, hasEtcd } from "../support/etcd-server.js";
import { until } from "../support/until.js";

const limits = { signal: new AbortController().signal, limitMs: 5_000 };
setMaxListeners(0, limits.signal);
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const bench = new Bench();

describe.skipIf(!hasEtcd())("etcd: faults, one member", () => {
  let server: EtcdServer;
  let client: GrpcEtcdClient;

  beforeAll(async () => {
    server = await EtcdServer.start();
    client = server.client();
  });
  afterEach(() => bench.cleanUp());
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
        const proxy = await bench.proxyFor(server.endpoints[0]!);
        const [a, b] = [
          bench.stand(`/hole/${i}`, [proxy.endpoint]),
          bench.stand(`/hole/${i}`, server.endpoints),
        ];
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
    const proxy = await bench.proxyFor(server.endpoints[0]!);
    const election = bench.stand("/cut", [proxy.endpoint]);
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
    bench.onEnd(() => alone.stop());
    const contest = bench.contest([
      bench.stand("/restart", alone.endpoints),
      bench.stand("/restart", alone.endpoints),
    ]);
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
      const first = bench.stand(name, server.endpoints);
      const term = await first.campaign();
      const { child, events } = candidate(server.endpoints.join(","), name);
      await until(async () => (await keysOf(name)).length === 2);
      const deadKey = (await keysOf(name))[1];
      child.kill("SIGSTOP");
      await pause(500);
      await term.resign();
      await pause(2 * TTL - 500);
      const second = bench.stand(name, server.endpoints);
      const newTerm = await second.campaign(); // its key is gone with its lease
      expect(await keysOf(name)).not.toContain(deadKey);
      child.kill("SIGCONT");
      await until(async () => (await keysOf(name)).length === 2, 3 * TTL); // it campaigns again, behind
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
    const next = bench.stand(name, server.endpoints).campaign();
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
  bench.onEnd(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, "exit");
    child.kill("SIGKILL");
    await exited;
  });
  return { child, events };
}
