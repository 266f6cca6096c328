/** The example of the guide passes the whole suite, faults and real processes included. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, describe, test } from "vitest";
import { etagBackend } from "../../examples/custom-backend/backend.js";
import { startStore } from "../../examples/custom-backend/server.js";
import type { StoreServer } from "../../examples/custom-backend/server.js";
import type { FaultProxy } from "../../src/testing/conformance/index.js";
import { conformanceSuite, faultProxy } from "../../src/testing/conformance/index.js";
import { ROOT } from "../shape/sources.js";
import { wireFaults } from "../support/wire-faults.js";

const program = join(ROOT, ".build/examples/custom-backend/candidate.js");
let store: StoreServer;
let proxy: FaultProxy;

beforeAll(async () => {
  store = await startStore();
  proxy = await faultProxy({ port: store.port });
});
afterAll(async () => {
  await proxy[Symbol.asyncDispose]();
  await store[Symbol.asyncDispose]();
});

describe("custom backend", () => {
  conformanceSuite({
    runner: { describe, test, skip: test.skip },
    backend: async () => etagBackend(`${proxy.host}:${proxy.port}`),
    faults: { ...wireFaults(() => proxy), forget: () => store.forget(), step: (ms) => store.step(ms) },
    child: ({ election, ttlMs }) =>
      spawn(process.execPath, [program, `127.0.0.1:${store.port}`, election, `${ttlMs}`], {
        stdio: ["ignore", "pipe", "inherit"],
      }),
  });
});
