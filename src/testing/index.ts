/** For tests: what every backend must do. */
export * from "./conformance/index.js";
