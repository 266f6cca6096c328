/** The rules that a schedule may violate. */
import type { CronRule } from "./cron-monitor.js";

export type Rule =
  /** Two running nodes had `held` at one instant. */
  | "two-leaders"
  /** A voter voted for, or acknowledged, two candidates in one term. */
  | "two-votes"
  /** A voter broke a promise. */
  | "promise"
  /** A voter could not read its own journal. */
  | "journal"
  /** Records did not behave as one register each. */
  | "register"
  /** A token was not higher than all before it. */
  | "token-order"
  /** The fenced resource took something it must not. */
  | "fence"
  /** A term ended twice, or not at all, or began while the last one had not ended. */
  | "one-end"
  /** `held` was true after the end was reported. */
  | "held-after-end"
  /** Something happened after `close()` had resolved, or `close()` did not resolve. */
  | "after-close"
  /** Leadership was given back while its work still ran and its time had not passed. */
  | "stop-order"
  /** Work began while the last work of the same candidate had not settled. */
  | "work-overlap"
  /** Nobody led soon after the last fault. */
  | "liveness"
  /** A node asked the store more often than it may. */
  | "hot-loop"
  /** A term was called lost although the store still had it. */
  | "false-loss"
  /** The deadline passed, the event loop turned, and the work was not told to stop. */
  | "late-stop"
  /** An observer went back to an older leader. */
  | "observer-order"
  /** An observer was told that nobody leads while someone did. */
  | "false-vacancy"
  /** A lease was extended for a key that was gone before the question. */
  | "false-extension"
  /** An observer was told of a token that the store has never granted. */
  | "false-token"
  /** The store answered a renewal after it had forgotten the term, and the term went on. */
  | "late-loss"
  /** A candidate was told that tokens went back, but they had not. */
  | "false-regression"
  /** A leader's loop was blocked beyond its deadline, and nobody followed when its lease would have ended. */
  | "slow-takeover"
  /** All was well, a leader named an heir that waited, and another led next. */
  | "heir-ignored"
  /** A leader handed over to a higher priority before its term had lasted as long as it should. */
  | "flapping"
  /** A leader handed over, unasked, to a candidate that was gone, or whose priority was not higher. */
  | "wrong-heir"
  /** All was well for long, and a candidate of a higher priority waited; or one led that may not. */
  | "priority"
  /** A promise was rejected and nobody listened, or the library threw into its host. */
  | "unhandled"
  | CronRule;

export interface Violation {
  readonly rule: Rule;
  readonly detail: string;
  /** True milliseconds. */
  readonly t: number;
}
