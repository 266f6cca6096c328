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

/** The tests of a store's own clock. */
export const STORE_CLOCK = [
  "clocks that jump: the store's clock set forward ends no lease that a waiting candidate saw renewed",
  "clocks that jump: the store's clock set back keeps nobody in office for long",
];
