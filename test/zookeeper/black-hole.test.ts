/**
 * The leader's connection dies without a word. Ours stops before the next one
 * leads. CONCLAVE_LONG=1: thirty times, with node-zookeeper-client in the same
 * trouble beside it (how long it has two leaders is printed, not judged).
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { zookeeperBackend } from "../../src/backends/zookeeper/index.js";
import { Election } from "../../src/index.js";
import { faultProxy } from "../../src/testing/conformance/index.js";
import { NodeZooKeeperCandidate } from "../support/node-zookeeper-candidate.js";
import { until } from "../support/until.js";
import { hasZooKeeper, ZooKeeperServer } from "../support/zookeeper-server.js";

const LONG = process.env["CONCLAVE_LONG"] === "1";
const ROUNDS = LONG ? 30 : 2;
const AT_ONCE = LONG ? 10 : 2;
const TTL_MS = 6_000;
const LONGEST_OVERLAP_MS = 20_000;

describe.skipIf(!hasZooKeeper())("a black hole before the leader", () => {
  let server: ZooKeeperServer;
  beforeAll(async () => {
    server = await ZooKeeperServer.start();
  }, 120_000);
  afterAll(() => server.stop());

  it(
    "never two",
    async () => {
      const overlaps: number[] = [];
      for (let round = 0; round < ROUNDS; round += AT_ONCE) {
        const names = Array.from({ length: AT_ONCE }, (_, i) => `hole${round + i}`);
        const theirs = LONG ? names.map((name) => theirsOnce(server, `/theirs-${name}`)) : [];
        await Promise.all(names.map((name) => oursOnce(server, name)));
        overlaps.push(...(await Promise.all(theirs)));
      }
      if (LONG)
        process.stderr.write(
          `node-zookeeper-client: two at once for ${overlaps.map((ms) => Math.round(ms)).join(", ")} ms\n`,
        );
    },
    ROUNDS * 60_000,
  );
});

function election(server: ZooKeeperServer, hosts: string, name: string): Election {
  const backend = zookeeperBackend({ hosts, tickMs: server.tickMs, env: {}, warn: () => {} });
  return new Election({ name, backend, ttlMs: TTL_MS, closeBackend: true });
}

async function oursOnce(server: ZooKeeperServer, name: string): Promise<void> {
  const member = server.members[0]!;
  await using proxy = await faultProxy({ port: member.port });
  await using first = election(server, `${proxy.host}:${proxy.port}`, name);
  await using second = election(server, member.host, name);
  first.on("error", () => {});
  const old = await first.campaign();
  const campaign = second.campaign();
  await until(async () => (await second.leader())?.token === old.token);
  await proxy.blackHole();
  const next = await campaign;
  expect(old.held).toBe(false);
  expect(next.held).toBe(true);
  expect(next.token).toBeGreaterThan(old.token);
  await proxy.heal();
}

/** How long both believed that they lead. */
async function theirsOnce(server: ZooKeeperServer, parent: string): Promise<number> {
  const member = server.members[0]!;
  await using proxy = await faultProxy({ port: member.port });
  const first = await NodeZooKeeperCandidate.connect(`${proxy.host}:${proxy.port}`, parent, TTL_MS);
  const second = await NodeZooKeeperCandidate.connect(member.host, parent, TTL_MS);
  await (
    await first.stand()
  ).elected;
  const { elected } = await second.stand();
  await proxy.blackHole();
  await elected;
  const since = performance.now();
  const overlapMs = first.leads ? await overlapOf(first, since) : 0;
  await proxy.heal();
  first.close();
  second.close();
  return overlapMs;
}

async function overlapOf(first: NodeZooKeeperCandidate, since: number): Promise<number> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<void>((resolve) => (timer = setTimeout(resolve, LONGEST_OVERLAP_MS)));
  await Promise.race([first.told, limit]);
  clearTimeout(timer);
  return performance.now() - since;
}
