/**
 * ZooKeeper: graceful handover beside kazoo and node-zookeeper-client, a thousand elections on one session,
 * and what candidates cost that only wait. The server is started here, on this
 * machine, so all figures are for a loopback network.
 */
import { zookeeperBackend } from "../../src/backends/zookeeper/index.js";
import type { Backend } from "../../src/backend.js";
import { Election } from "../../src/index.js";
import { NodeZooKeeperCandidate } from "../../test/support/node-zookeeper-candidate.js";
import { until } from "../../test/support/until.js";
import { hasPeer, Peer } from "../../test/support/zookeeper-peers.js";
import { hasZooKeeper, ZooKeeperServer } from "../../test/support/zookeeper-server.js";
import type { Row } from "../measure.js";

const HANDOVERS = 200;
const ELECTIONS = 1_000;
const FOLLOWERS = 20;
const IDLE_MS = 30_000;

function median(values: readonly number[]): string {
  const sorted = values.toSorted((a, b) => a - b);
  return `${(sorted[Math.floor(sorted.length / 2)] ?? 0).toFixed(2)} ms`;
}

const open = (server: ZooKeeperServer): Backend =>
  zookeeperBackend({ hosts: server.hosts, tickMs: server.tickMs, env: {}, warn: () => {} });

/** Each twice, and the second time counts: a server that has just started is slow to all, and most to the first. */
async function* handover(server: ZooKeeperServer): AsyncGenerator<Row> {
  let results = ["", "", ""];
  for (let pass = 0; pass < 2; pass++)
    results = [await ourHandover(server), await kazooHandover(server), await nodeClientHandover(server)];
  const [ours = "", kazoo = "", nodeClient = ""] = results;
  yield {
    what: "graceful handover, median",
    result: ours,
    beside: `${kazoo}; node-zookeeper-client ${nodeClient}, in this process`,
  };
}

async function ourHandover(server: ZooKeeperServer): Promise<string> {
  const backends = [open(server), open(server)];
  const [a, b] = backends.map((backend) => new Election({ name: "handover", backend, ttlMs: 10_000 }));
  const times: number[] = [];
  let [current, next] = [a!, b!];
  let term = await current.campaign();
  for (let i = 0; i < HANDOVERS; i++) {
    const campaign = next.campaign();
    await until(async () => ((await server.members[0]!.ask("dump")) ?? "").split("/handover/").length === 3);
    const from = performance.now();
    const resigned = term.resign();
    term = await campaign;
    times.push(performance.now() - from);
    await resigned;
    [current, next] = [next, current];
  }
  await Promise.all([a!.close(), b!.close()]);
  await Promise.all(backends.map((backend) => backend[Symbol.asyncDispose]()));
  return median(times);
}

async function nodeClientHandover(server: ZooKeeperServer): Promise<string> {
  const start = (): Promise<NodeZooKeeperCandidate> =>
    NodeZooKeeperCandidate.connect(server.members[0]!.host, "/node-client", 10_000);
  let [current, next] = [await start(), await start()];
  const times: number[] = [];
  await (
    await current.stand()
  ).elected;
  for (let i = 0; i < HANDOVERS; i++) {
    const { elected } = await next.stand();
    await until(
      async () => ((await server.members[0]!.ask("dump")) ?? "").split("/node-client/").length === 3,
    );
    const from = performance.now();
    const resigned = current.resign();
    await elected;
    times.push(performance.now() - from);
    await resigned;
    [current, next] = [next, current];
  }
  current.close();
  next.close();
  return median(times);
}

async function kazooHandover(server: ZooKeeperServer): Promise<string> {
  if (!hasPeer("kazoo")) return "kazoo is not installed";
  const start = (id: string): Peer =>
    new Peer("kazoo", { hosts: server.hosts.join(","), path: "/kazoo", id, classes: undefined });
  let [current, next] = [start("a"), start("b")];
  await Promise.all([current.ready(), next.ready()]);
  const times: number[] = [];
  current.stand();
  await until(() => current.leading);
  for (let i = 0; i < HANDOVERS; i++) {
    next.stand();
    await until(async () => ((await server.members[0]!.ask("dump")) ?? "").split("/kazoo/").length === 3);
    const led = new Promise<void>((resolve) => (next.onLeading = resolve));
    const from = performance.now();
    const resigned = current.resign();
    await led;
    times.push(performance.now() - from);
    await resigned;
    [current, next] = [next, current];
  }
  await Promise.all([current.kill(), next.kill()]);
  return `kazoo ${median(times)}, with a pipe to its process`;
}

async function* many(server: ZooKeeperServer): AsyncGenerator<Row> {
  const backend = open(server);
  const elections = Array.from(
    { length: ELECTIONS },
    (_, i) => new Election({ name: `many/${i}`, backend, ttlMs: 10_000 }),
  );
  const from = performance.now();
  const terms = await Promise.all(elections.map((election) => election.campaign()));
  const elected = performance.now() - from;
  const before = await packets(server);
  await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
  const requests = ((await packets(server)) - before) / (IDLE_MS / 1000);
  const held = terms.filter((term) => term.held).length;
  yield { what: `${ELECTIONS} elections on one session, elected`, result: `${Math.round(elected)} ms` };
  yield {
    what: `${ELECTIONS} elections on one session, idle`,
    result: `${requests.toFixed(2)} requests/s, ${held} held`,
  };
  await Promise.all(elections.map((election) => election.close()));
  await backend[Symbol.asyncDispose]();
}

async function* idle(server: ZooKeeperServer): AsyncGenerator<Row> {
  const backends = Array.from({ length: 1 + FOLLOWERS }, () => open(server));
  const elections = backends.map((backend) => new Election({ name: "idle", backend, ttlMs: 10_000 }));
  await elections[0]!.campaign();
  const stop = new AbortController();
  const campaigns = elections.slice(1).map((election) => election.campaign({ signal: stop.signal }));
  for (const campaign of campaigns) campaign.catch(() => {});
  await until(
    async () => ((await server.members[0]!.ask("dump")) ?? "").split("/idle/").length === 2 + FOLLOWERS,
  );
  const before = await packets(server);
  await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
  const rate = ((await packets(server)) - before) / (IDLE_MS / 1000);
  yield {
    what: `1 leader and ${FOLLOWERS} that wait, each with a session`,
    result: `${rate.toFixed(2)} requests/s`,
  };
  stop.abort();
  await Promise.all(elections.map((election) => election.close()));
  await Promise.all(backends.map((backend) => backend[Symbol.asyncDispose]()));
}

async function packets(server: ZooKeeperServer): Promise<number> {
  return Number(/^zk_packets_received\s+(\d+)/m.exec((await server.members[0]!.ask("mntr")) ?? "")?.[1] ?? 0);
}

export default async function* bench(): AsyncGenerator<Row> {
  if (!hasZooKeeper()) {
    yield { what: "skipped", result: "ZooKeeper or Java is not installed (make servers)" };
    return;
  }
  const wanted = process.env["BENCH_PART"];
  for (const part of [handover, many, idle]) {
    if (wanted !== undefined && part.name !== wanted) continue;
    const server = await ZooKeeperServer.start({ tickMs: 2_000 });
    try {
      yield* part(server);
    } finally {
      await server.stop();
    }
  }
}
