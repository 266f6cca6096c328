/** The faults of a proxy that is started later than the suite is described. */
import type { FaultProxy, WireFaults } from "../../src/testing/conformance/index.js";

export function wireFaults(proxy: () => FaultProxy): Required<WireFaults> {
  return {
    cut: () => proxy().cut(),
    deafen: (start) => proxy().deafen(start),
    slow: (delayMs) => proxy().slow(delayMs),
    blackHole: () => proxy().blackHole(),
    heal: () => proxy().heal(),
  };
}
