import { afterAll, beforeAll, describe, test } from "vitest";
import { postgresBackend } from "../../src/backends/postgres/index.js";
import type { Backend } from "../../src/seam/backend.js";
import { conformanceSuite, faultProxy } from "../../src/testing/conformance/index.js";
import type { FaultProxy } from "../../src/testing/conformance/index.js";
import { startCandidate } from "../support/children.js";
import { canStep, hasPostgres, PostgresServer } from "../support/postgres-server.js";
import { wireFaults } from "../support/wire-faults.js";

describe.skipIf(!hasPostgres())("postgres", () => {
  let server: PostgresServer;
  let proxy: FaultProxy;

  beforeAll(async () => {
    server = await PostgresServer.start({ steps: canStep });
    proxy = await faultProxy({ port: server.port });
  });
  afterAll(async () => {
    await proxy?.[Symbol.asyncDispose]();
    await server?.stop();
  });

  conformanceSuite({
    runner: { describe, test, skip: test.skip },
    backend: async (): Promise<Backend> =>
      postgresBackend({ url: `postgres://postgres@${proxy.host}:${proxy.port}/postgres` }),
    faults: {
      ...wireFaults(() => proxy),
      forget: async () => void (await server.sql("DROP TABLE IF EXISTS conclave_record")),
      step: (ms) => server.step(ms),
    },
    skips: canStep
      ? []
      : [
          {
            test: "a store whose clock jumps",
            reason: "libfaketime is not installed: the server's clock cannot be set",
          },
        ],
    child: ({ election, ttlMs }) => startCandidate({ url: server.url(), election, ttlMs }),
  });
});
