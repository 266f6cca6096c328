/** `quorum: true` where Bully has two leaders: the same partition, and never more than one. */
import { afterEach, expect, it } from "vitest";
import { bullyBackend } from "../../src/backends/bully/index.js";
import { Election } from "../../src/election/election.js";
import { faultProxy } from "../../src/testing/conformance/index.js";
import type { FaultProxy } from "../../src/testing/conformance/index.js";
import { KEY, RaftCluster } from "../support/raft-cluster.js";
import { until } from "../support/until.js";

const after: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of after.splice(0).toReversed()) await end();
});

/** Every way from one peer to another, by "from to". */
async function proxies(cluster: RaftCluster): Promise<ReadonlyMap<string, FaultProxy>> {
  const made = new Map<string, FaultProxy>();
  for (const from of cluster.names)
    for (const [index, to] of cluster.names.entries())
      if (from !== to) made.set(`${from} ${to}`, await faultProxy({ port: cluster.ports[index]! }));
  after.push(() => Promise.all([...made.values()].map((proxy) => proxy[Symbol.asyncDispose]())));
  return made;
}

function electionOf(cluster: RaftCluster, self: string, ways: ReadonlyMap<string, FaultProxy>): Election {
  const others = cluster.names.filter((name) => name !== self);
  const backend = bullyBackend({
    peers: cluster.peers,
    self,
    quorum: true,
    dir: cluster.dir(self),
    key: KEY,
    dial: Object.fromEntries(others.map((to) => [to, `127.0.0.1:${ways.get(`${self} ${to}`)!.port}`])),
  });
  const election = new Election({ name: "e", id: self, backend, closeBackend: true, ttlMs: 600 });
  election.on("error", () => {}); // a peer cannot be reached: that is what is tried
  return election;
}

it("in a partition the majority leads and the other side does not; healed, there is one as well", async () => {
  const cluster = await RaftCluster.prepare(3);
  after.push(() => cluster.stop());
  const ways = await proxies(cluster);
  const elections = cluster.names.map((name) => electionOf(cluster, name, ways));
  const holders = (): string[] => cluster.names.filter((_, index) => elections[index]!.term?.held === true);
  const stop = new AbortController();
  const most: string[][] = [];
  const running = elections.map((election) =>
    election
      .run(
        async (term) => {
          while (!term.signal.aborted) {
            if (holders().length > 1) most.push(holders());
            await new Promise((resolve) => setTimeout(resolve, 2));
          }
        },
        { signal: stop.signal },
      )
      .catch(() => {}),
  );
  after.push(async () => {
    stop.abort();
    await Promise.all(running);
    await Promise.all(elections.map((election) => election.close()));
  });
  await until(() => holders().length === 1, 20_000);
  for (let round = 0; round < 3; round++) {
    const [leader = ""] = holders();
    const cut = [...ways].filter(([way]) => way.split(" ").includes(leader));
    for (const [, proxy] of cut) await proxy.cut();
    await until(() => holders().length === 1 && holders()[0] !== leader, 20_000);
    for (const [, proxy] of cut) await proxy.heal();
    // The one that was cut off hears of the other, and does not take over, whatever its rank.
    const cutOff = elections[cluster.names.indexOf(leader)]!;
    for await (const heard of cutOff.observe({ signal: stop.signal })) if (heard !== null) break;
  }
  expect(most).toEqual([]);
}, 90_000);
