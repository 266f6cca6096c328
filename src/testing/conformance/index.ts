export { ConformanceFailure } from "./check.js";
export { FaultSwitch, faultyStore } from "./faults.js";
export type { Faults, FaultStart, WireFaults } from "./faults.js";
export type { ChildRequest, ConformanceOptions, Runner, Skip } from "./options.js";
export { probe } from "./probe.js";
export type { ProbeOptions } from "./probe.js";
export { faultProxy } from "./proxy.js";
export type { FaultProxy, FaultProxyTarget } from "./proxy.js";
export { conformanceSuite, conformanceTests } from "./suite.js";
