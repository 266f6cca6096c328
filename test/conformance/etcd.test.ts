import { afterAll, beforeAll, describe, test } from "vitest";
import { etcdBackend } from "../../src/backends/etcd/index.js";
import { parseEndpoint } from "../../src/backends/etcd/client/endpoint.js";
import type { Backend } from "../../src/seam/backend.js";
import { conformanceSuite, faultProxy } from "../../src/testing/conformance/index.js";
import type { FaultProxy } from "../../src/testing/conformance/index.js";
import { startCandidate } from "../support/children.js";
import { EtcdServer, hasEtcd } from "../support/etcd-server.js";
import { wireFaults } from "../support/wire-faults.js";
import { without } from "../support/wishes.js";

// The second layout takes as long again: with the long runs.
const layouts = process.env["CONCLAVE_LONG"] === "1" ? (["queue", "key"] as const) : (["queue"] as const);

describe.skipIf(!hasEtcd()).each(layouts)("etcd, layout %s", (layout) => {
  let server: EtcdServer;
  let proxy: FaultProxy;

  beforeAll(async () => {
    server = await EtcdServer.start();
    proxy = await faultProxy({ port: parseEndpoint(server.endpoints[0]!).port });
  });
  afterAll(async () => {
    await proxy[Symbol.asyncDispose]();
    await server.stop();
  });

  conformanceSuite({
    runner: { describe, test, skip: test.skip },
    backend: async (): Promise<Backend> =>
      etcdBackend({ endpoints: `${proxy.host}:${proxy.port}`, layout, env: {} }),
    faults: wireFaults(() => proxy),
    skips: [
      {
        test: "a store that forgets",
        reason: "a wiped cluster is another one: see test/etcd/election.test.ts",
      },
      ...(layout === "key" ? without(["heir"], "one key has no place for a name beside it") : []),
      { test: "a store whose clock jumps", reason: "etcd times leases by a clock that cannot be set" },
    ],
    child: ({ election, ttlMs }) =>
      startCandidate({ url: `etcd://${server.endpoints[0]}?layout=${layout}`, election, ttlMs }),
  });
});
