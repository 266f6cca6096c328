import { describe, test } from "vitest";
import type { Backend } from "../../src/core/backend.js";
import { recordBackend } from "../../src/record/backend.js";
import { textLeases } from "../../src/record/codec.js";
import { conformanceSuite, FaultSwitch, faultyStore } from "../../src/testing/conformance/index.js";
import { TableServer } from "./table.js";

export function engineSuite(expiry: "observer" | "store"): void {
  const faults = new FaultSwitch();
  const server = new TableServer();
  const leases = (): ReturnType<TableServer["timedLeases"]> =>
    expiry === "store" ? server.timedLeases() : textLeases(server.texts("leases"));
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
      leases: faultyStore(leases(), faults),
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
