/** What a run of the simulator takes, and what it yields. */
import type { CronCounts } from "./cron-monitor.js";
import type { SimulatedStoreFactory } from "./custom-store.js";
import type { Plan } from "./plan.js";
import type { Rule, Violation } from "./rules.js";
import type { SubjectFactory } from "./subject.js";

export interface SimulateOptions {
  /** What campaigns. Default: the library's own election. If given, no schedules are run on it. */
  readonly elect?: SubjectFactory;
  /** A store of your own instead of the plan's. If given, no schedules are run on it. */
  readonly store?: SimulatedStoreFactory;
  /** Rules that are not to be checked. */
  readonly ignore?: readonly Rule[];
  /** Keep what happened as lines. Default: only its hash. */
  readonly trace?: boolean;
  /**
   * Tells of promises that were rejected while nobody listened: calls back for
   * each, until the function it returned is called. A library does not touch the
   * process it runs in, so whoever runs the simulator connects this to the
   * process's `unhandledRejection`.
   */
  readonly rejections?: (report: (error: unknown) => void) => () => void;
}

export interface SimResult {
  readonly plan: Plan;
  readonly violation: Violation | undefined;
  readonly terms: number;
  readonly faults: number;
  readonly virtualMs: number;
  readonly events: number;
  /** Equal for two runs of the same plan, or something is not deterministic. */
  readonly hash: string;
  readonly accepted: number;
  readonly refused: number;
  /** Of a plan with a schedule. */
  readonly cron: CronCounts | undefined;
  readonly trace: readonly string[] | undefined;
}
