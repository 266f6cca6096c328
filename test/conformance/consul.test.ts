import { afterAll, beforeAll, describe, test } from "vitest";
import { consulBackend } from "../../src/backends/consul/index.js";
import type { Backend } from "../../src/seam/backend.js";
import { conformanceSuite, faultProxy } from "../../src/testing/conformance/index.js";
import type { FaultProxy } from "../../src/testing/conformance/index.js";
import { startCandidate } from "../support/children.js";
import { ConsulServer, hasConsul } from "../support/consul-server.js";
import { wireFaults } from "../support/wire-faults.js";

// The second layout takes as long again: with the long runs.
const layouts = process.env["CONCLAVE_LONG"] === "1" ? (["lock", "key"] as const) : (["lock"] as const);

describe.skipIf(!hasConsul()).each(layouts)("consul, layout %s", (layout) => {
  let server: ConsulServer;
  let proxy: FaultProxy;

  beforeAll(async () => {
    server = await ConsulServer.start();
    proxy = await faultProxy({ port: server.entry.ports.http });
  });
  afterAll(async () => {
    await proxy[Symbol.asyncDispose]();
    await server.stop();
  });

  conformanceSuite({
    runner: { describe, test, skip: test.skip },
    backend: async (): Promise<Backend> =>
      consulBackend({
        ...{ address: `${proxy.host}:${proxy.port}`, prefix: "conformance", layout, env: {} },
        minTtlMs: 1_000,
      }),
    faults: wireFaults(() => proxy),
    skips: [
      {
        test: "a store that forgets",
        reason: "a wiped cluster is another one: see test/consul/cluster.test.ts",
      },
      { test: "a store whose clock jumps", reason: "Consul times sessions by a clock that cannot be set" },
    ],
    child: ({ election, ttlMs }) =>
      startCandidate({
        url: `consul://${server.address}/conformance?layout=${layout}&minTtl=1s`,
        ...{ election, ttlMs },
      }),
  });
});
