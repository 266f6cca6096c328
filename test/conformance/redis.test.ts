/** The six promises on a real server. Its clock can be set, and begins an hour behind: it has been up for long by its own account. */
import { afterAll, beforeAll, describe, test } from "vitest";
import { openRedis } from "../../src/backends/redis/index.js";
import type { Backend } from "../../src/seam/backend.js";
import { conformanceSuite, faultProxy } from "../../src/testing/conformance/index.js";
import type { FaultProxy } from "../../src/testing/conformance/index.js";
import { startCandidate } from "../support/children.js";
import { hasFaketime, hasRedis, RedisServer } from "../support/redis-server.js";
import { wireFaults } from "../support/wire-faults.js";

const HOUR_MS = 3_600_000;

describe.skipIf(!hasRedis() || !hasFaketime())("redis", () => {
  let server: RedisServer;
  let proxy: FaultProxy;

  beforeAll(async () => {
    server = await RedisServer.start({ behindMs: HOUR_MS });
    // Otherwise leases of a minute would wait until the server has been up for one.
    await server.step(HOUR_MS);
    proxy = await faultProxy({ port: server.port });
  });
  afterAll(async () => {
    await proxy?.[Symbol.asyncDispose]();
    await server?.stop();
  });

  conformanceSuite({
    runner: { describe, test, skip: test.skip },
    backend: async (): Promise<Backend> => openRedis(`redis://127.0.0.1:${proxy.port}`),
    faults: {
      ...wireFaults(() => proxy),
      forget: async () => void (await server.cli("FLUSHALL")),
      step: (ms) => server.step(ms),
    },
    child: ({ election, ttlMs }) => startCandidate({ url: server.url, election, ttlMs }),
    rounds: process.env["CONCLAVE_LONG"] === "1" ? 20 : 5,
  });
});
