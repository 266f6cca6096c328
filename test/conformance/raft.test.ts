/**
 * Three voters stay up in this process; every backend of the suite is one more
 * process that stands and observes without a vote, behind a proxy for each voter.
 */
import { afterAll, beforeAll, describe, test } from "vitest";
import type { Backend } from "../../src/seam/backend.js";
import { conformanceSuite, faultProxy } from "../../src/testing/conformance/index.js";
import type { FaultProxy, WireFaults } from "../../src/testing/conformance/index.js";
import { startCandidate } from "../support/children.js";
import { KEY, RaftCluster } from "../support/raft-cluster.js";

const wiped = "voters that lost their disks do not vote: see test/raft/lost-disk.test.ts";
const clock = "voters count leases by clocks that cannot be set";

describe("raft, backends without a vote", () => {
  let cluster: RaftCluster;
  let proxies: FaultProxy[];

  beforeAll(async () => {
    cluster = await RaftCluster.start();
    proxies = await Promise.all(cluster.ports.map((port) => faultProxy({ port })));
    process.env["CONCLAVE_RAFT_KEY"] = KEY;
  });
  afterAll(async () => {
    delete process.env["CONCLAVE_RAFT_KEY"];
    await Promise.all(proxies.map((proxy) => proxy[Symbol.asyncDispose]()));
    await cluster.stop();
  });

  const all = (fault: (proxy: FaultProxy) => unknown): void => proxies.forEach((proxy) => void fault(proxy));
  const faults: Required<WireFaults> = {
    cut: () => all((proxy) => proxy.cut()),
    deafen: (start) => all((proxy) => proxy.deafen(start)),
    slow: (delayMs) => all((proxy) => proxy.slow(delayMs)),
    blackHole: () => all((proxy) => proxy.blackHole()),
    heal: () => all((proxy) => proxy.heal()),
  };

  conformanceSuite({
    runner: { describe, test, skip: test.skip },
    backend: async (): Promise<Backend> => {
      const dial = cluster.names.map((name, index) => [name, `127.0.0.1:${proxies[index]!.port}`]);
      return cluster.backend(undefined, { dial: Object.fromEntries(dial) as Record<string, string> });
    },
    faults,
    skips: [
      { test: "a store that forgets", reason: wiped },
      { test: "a store whose clock jumps", reason: clock },
    ],
    child: ({ election, ttlMs }) => startCandidate({ url: `raft://${cluster.list}`, election, ttlMs }),
  });
});
