import { afterAll, beforeAll, describe, test } from "vitest";
import { zookeeperBackend } from "../../src/backends/zookeeper/index.js";
import type { Backend } from "../../src/seam/backend.js";
import { conformanceSuite, faultProxy } from "../../src/testing/conformance/index.js";
import type { FaultProxy } from "../../src/testing/conformance/index.js";
import { startCandidate } from "../support/children.js";
import { wireFaults } from "../support/wire-faults.js";
import { hasZooKeeper, ZooKeeperServer } from "../support/zookeeper-server.js";

// The other layouts differ in names alone, and take as long again: with the long runs.
const layouts =
  process.env["CONCLAVE_LONG"] === "1"
    ? (["curator-latch", "curator-lock", "kazoo"] as const)
    : (["curator-latch"] as const);

describe.skipIf(!hasZooKeeper()).each(layouts)("ZooKeeper, layout %s", (layout) => {
  let server: ZooKeeperServer;
  let proxy: FaultProxy;

  beforeAll(async () => {
    server = await ZooKeeperServer.start({ config: ["maxSessionTimeout=60000"] });
    proxy = await faultProxy({ port: server.members[0]!.port });
  }, 60_000);
  afterAll(async () => {
    await proxy[Symbol.asyncDispose]();
    await server.stop();
  });

  conformanceSuite({
    runner: { describe, test, skip: test.skip },
    backend: async (): Promise<Backend> =>
      zookeeperBackend({
        ...{ hosts: `${proxy.host}:${proxy.port}`, layout, env: {} },
        ...{ tickMs: server.tickMs, warn: () => {} },
      }),
    faults: wireFaults(() => proxy),
    skips: [
      {
        test: "a store that forgets",
        reason: "a wiped ensemble is another one: see test/zookeeper/ensemble.test.ts",
      },
      { test: "a store whose clock jumps", reason: "ZooKeeper times sessions by a clock that cannot be set" },
    ],
    child: ({ election, ttlMs }) =>
      startCandidate({
        url: `zookeeper://${server.hosts[0]}?layout=${layout}&tick=${server.tickMs}ms`,
        election,
        ttlMs,
      }),
  });
});
