/** For tests: what every backend must do, the simulator that tries this library, and a clock for your own. */
export * from "./conformance/index.js";
export * from "./sim/index.js";
