/** The record engine by itself, on a store that can be cut, deafened and slowed: once timed by observers, once by the store. */
import { describe, test } from "vitest";
import type { Backend } from "../../src/core/backend.js";
import { recordBackend } from "../../src/record/backend.js";
import { textLeases } from "../../src/record/codec.js";
import { conformanceSuite, FaultSwitch, faultyStore } from "../../src/testing/conformance/index.js";
import { TableServer } from "../support/table.js";

for (const expiry of ["observer", "store"] as const) {
  const faults = new FaultSwitch();
  const server = new TableServer();
  const backend = async (): Promise<Backend> =>
    recordBackend({
      name: "table",
      guarantees: {
        exclusion: "linearizable",
        expiry,
        token: "record",
        succession: "unordered",
        ttl: { minMs: 100, stepMs: 1 },
      },
      leases: faultyStore(
        expiry === "store" ? server.timedLeases() : textLeases(server.texts("leases")),
        faults,
      ),
      records: faultyStore(server.texts("records"), faults),
    });

  describe(`record engine, expiry by the ${expiry}`, () => {
    conformanceSuite({
      runner: { describe, test, skip: test.skip },
      backend,
      faults,
      skips: [{ test: "real processes", reason: "the table is not shared between processes" }],
    });
  });
}
