/**
 * Raft peers: handover, failover after a kill, idle traffic, a thousand elections
 * on three voters, compare-and-swap of a record. Voters are on this machine and
 * write to its disk, so the handover includes real fsyncs. BENCH_PART=crash runs
 * one part.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Election } from "../../src/election/election.js";
import { RaftCluster } from "../../test/support/raft-cluster.js";
import { machineMs } from "../machine-clock.js";
import { type Row, show, summarize } from "../measure.js";

const HANDOVERS = 200;
const CRASHES = 20;
const CRASH_TTL_MS = 1_000;
const MANY = 1_000;
const IDLE_MS = 20_000;
const CAS_MS = 5_000;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function* handover(cluster: RaftCluster): AsyncGenerator<Row> {
  const [a, b] = ["n1", "n2"].map(
    (name) => new Election({ name: "handover", backend: cluster.voter(name), ttlMs: 10_000 }),
  );
  const times: number[] = [];
  let term = await a!.campaign();
  for (let i = 0; i < HANDOVERS; i++) {
    const next = (i % 2 === 0 ? b! : a!).campaign();
    await pause(50);
    const from = performance.now();
    const resigned = term.resign();
    term = await next;
    times.push(performance.now() - from);
    await resigned;
  }
  await Promise.all([a!.close(), b!.close()]);
  yield { what: "graceful handover, resign() to the next term", result: show(summarize(times)) };
}

/** A voter in a process of its own. */
interface PeerProcess {
  /** Machine time at which it began to lead, if it does. */
  led: Promise<number>;
  kill(): Promise<void>;
}

function startPeer(cluster: RaftCluster, self: string): PeerProcess {
  const script = fileURLToPath(new URL("peer.js", import.meta.url));
  const url = `raft://${cluster.list}?self=${self}&dir=${cluster.dir(self)}&insecure=true`;
  const child = spawn(process.execPath, [script, url, String(CRASH_TTL_MS)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const gone = once(child, "exit");
  const lines = createInterface({ input: child.stdout });
  return {
    led: once(lines, "line").then(([line]) => Number(line)),
    kill: async () => {
      child.kill("SIGKILL");
      await gone;
    },
  };
}

async function* crash(): AsyncGenerator<Row> {
  const cluster = await RaftCluster.prepare(3);
  const peers = new Map(cluster.names.map((name) => [name, startPeer(cluster, name)]));
  const first = async (): Promise<{ name: string; at: number }> =>
    Promise.race([...peers].map(async ([name, { led }]) => ({ name, at: await led })));
  const times: number[] = [];
  try {
    let leader = await first();
    for (let i = 0; i < CRASHES; i++) {
      await pause(2 * CRASH_TTL_MS);
      const old = peers.get(leader.name)!;
      peers.delete(leader.name);
      const at = machineMs();
      await old.kill();
      const next = await first();
      times.push(next.at - at);
      peers.set(leader.name, startPeer(cluster, leader.name));
      leader = next;
    }
  } finally {
    await Promise.all([...peers.values()].map((peer) => peer.kill()));
    await cluster.stop();
  }
  yield { what: "failover, SIGKILL of a leader that votes, ttl 1 s", result: show(summarize(times)) };
}

async function* many(cluster: RaftCluster): AsyncGenerator<Row> {
  const backend = cluster.voter("n1");
  const elections = Array.from(
    { length: MANY },
    (_, i) => new Election({ name: `many/${i}`, backend, ttlMs: 10_000 }),
  );
  const from = performance.now();
  const terms = await Promise.all(elections.map((election) => election.campaign()));
  const took = performance.now() - from;
  await pause(2_000);
  const before = loopbackBytes();
  const cpu = process.cpuUsage();
  await pause(IDLE_MS);
  const { user, system } = process.cpuUsage(cpu);
  const held = terms.filter((term) => term.held).length;
  yield { what: `${MANY} elections on three voters: all led after`, result: `${(took / 1000).toFixed(1)} s` };
  yield {
    what: "… idle, ttl 10 s",
    result: `${held} held; ${perSecond(loopbackBytes() - before)}; ${((user + system) / 10 / IDLE_MS).toFixed(1)} % of a core for all three voters`,
  };
  await Promise.all(elections.map((election) => election.close()));
}

async function* idle(cluster: RaftCluster): AsyncGenerator<Row> {
  const elections = cluster.names.map(
    (name) => new Election({ name: "idle", backend: cluster.voter(name), ttlMs: 10_000 }),
  );
  const campaigns = elections.map((election) => election.campaign().catch(() => {}));
  await Promise.race(campaigns);
  await pause(2_000);
  const before = loopbackBytes();
  await pause(IDLE_MS);
  yield {
    what: "one leader and two that wait, ttl 10 s, idle",
    result: `${perSecond(loopbackBytes() - before)} on the wire, all three together`,
  };
  await Promise.all(elections.map((election) => election.close()));
}

async function* cas(cluster: RaftCluster): AsyncGenerator<Row> {
  const { records } = cluster.voter("n1");
  for (const lanes of [1, 50]) {
    const end = performance.now() + CAS_MS;
    let done = 0;
    await Promise.all(
      Array.from({ length: lanes }, async (_, lane) => {
        const { signal } = new AbortController();
        let version: bigint | null = null;
        while (performance.now() < end) {
          const entry = await records.write(`cas-${lanes}-${lane}`, version, "text", { signal });
          version = entry!.version;
          done++;
        }
      }),
    );
    yield {
      what: `compare-and-swap of records, ${lanes} at once`,
      result: `${((done * 1000) / CAS_MS).toFixed(0)}/s`,
    };
  }
}

/** Nothing else may use the loopback meanwhile. */
function loopbackBytes(): number {
  return Number(/lo:\s*(\d+)/.exec(readFileSync("/proc/net/dev", "utf8"))?.[1] ?? NaN);
}

function perSecond(bytes: number): string {
  return `${(bytes / (IDLE_MS / 1000) / 1000).toFixed(1)} kB/s`;
}

export default async function* bench(): AsyncGenerator<Row> {
  const wanted = process.env["BENCH_PART"];
  const parts = [handover, crash, many, idle, cas];
  if (wanted !== undefined && !parts.some(({ name }) => name === wanted))
    throw new Error(
      `no part ${wanted} of this bench: BENCH_PART is one of ${parts.map(({ name }) => name).join(", ")}`,
    );
  for (const part of parts) {
    if (wanted !== undefined && part.name !== wanted) continue;
    if (part === crash) {
      yield* crash();
      continue;
    }
    const cluster = await RaftCluster.start(3);
    try {
      yield* part(cluster);
    } finally {
      await cluster.stop();
    }
  }
}
