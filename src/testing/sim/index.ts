/** The simulator: many nodes, one process, virtual time, every fault we know of. */
export type { CronCounts } from "./cron-monitor.js";
export type { CronPlan } from "./cron-plan.js";
export { FAULT_KINDS, planOf, STORE_KINDS, SUBJECTS } from "./plan.js";
export type { Fault, FaultKind, Latency, Plan, PlanOptions, StoreKind, SubjectKind } from "./plan.js";
export type { Rule, Violation } from "./rules.js";
export { shrink } from "./shrink.js";
export type { ShrinkOptions, Shrunk } from "./shrink.js";
export type { Subject, SubjectFactory, SubjectOptions, SubjectTerm } from "./subject.js";
export type {
  SimulatedHost,
  SimulatedProcess,
  SimulatedStore,
  SimulatedStoreFactory,
  SimulatedWire,
} from "./custom-store.js";
export { simulate } from "./simulate.js";
export type { SimResult, SimulateOptions } from "./simulation.js";
