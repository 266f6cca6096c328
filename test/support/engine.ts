import { describe, test } from "vitest";
import type { Backend } from "../../src/seam/backend.js";
import { recordBackend } from "../../src/record/backend.js";
import { textLeases } from "../../src/record/codec.js";
import { conformanceSuite, FaultSwitch, faultyStore } from "../../src/testing/conformance/index.js";
import type { Skip } from "../../src/testing/conformance/index.js";
import { TableServer } from "./table.js";
import type { TableOptions } from "./table.js";

export function engineSuite(
  expiry: "observer" | "store",
  options: TableOptions = {},
  skips: readonly Skip[] = [],
): void {
  const faults = new FaultSwitch();
  const server = new TableServer(options);
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
  const clock = "no clock of the store has a say: candidates time the lease by their own";
  const timed: readonly Skip[] = [{ test: "a store whose clock jumps", reason: clock }];

  describe(`record engine, expiry by the ${expiry}`, () => {
    conformanceSuite({
      runner: { describe, test, skip: test.skip },
      backend,
      faults: {
        cut: () => faults.cut(),
        deafen: (start) => faults.deafen(start),
        slow: (delayMs) => faults.slow(delayMs),
        blackHole: () => faults.blackHole(),
        heal: () => faults.heal(),
        forget: () => server.forget(),
        step: (ms) => server.step(ms),
      },
      skips: [
        { test: "real processes", reason: "the table is not shared between processes" },
        ...(expiry === "store" ? [] : timed),
        ...skips,
      ],
    });
  });
}
