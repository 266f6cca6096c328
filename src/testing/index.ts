/** For tests: what every backend must do, races of real processes, the simulator, and a clock for your own tests. */
export * from "./conformance/index.js";
export * from "./race/index.js";
export * from "./sim/index.js";
export { VirtualClock } from "./virtual-clock.js";
export type { VirtualClockOptions } from "./virtual-clock.js";
