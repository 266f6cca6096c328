/** What a schedule is like in a plan: how often, in which mode, and how long its jobs take. */
import type { Misfire, Mode, Overlap } from "../../cron/schedule.js";
import { cronTimetable, everyTimetable } from "../../cron/timetable.js";
import type { Timetable } from "../../cron/timetable.js";
import type { Fault } from "./plan.js";
import type { Random } from "./random.js";

export interface CronPlan {
  /** Cron text with seconds; or a period in milliseconds, which costs a hundredth of the time. */
  readonly cron: string | number;
  readonly mode: Mode;
  readonly misfire: Misfire;
  readonly overlap: Overlap;
  readonly graceMs: number;
  readonly maxCatchUp: number;
  readonly maxAttempts: number;
  /** Runs kept in the ledger. */
  readonly keep: number;
  readonly timeoutMs: number | null;
  /** One job in six takes up to this long, the others up to a sixth of it. */
  readonly longestJobMs: number;
}

export function drawCron(random: Random): CronPlan {
  const seconds = random.whole(1, 3);
  const periodMs = seconds * 1_000;
  const longestJobMs = Math.round(periodMs * random.between(0.4, 1.3));
  return {
    cron: random.chance(0.08) ? `*/${seconds} * * * * *` : periodMs,
    mode: random.pick(["at-most-once", "at-least-once"]),
    misfire: random.pick(["all", "all", "once", "skip"]),
    overlap: random.pick(["parallel", "wait", "skip"]),
    graceMs: random.whole(1, 8) * 1_000,
    maxCatchUp: random.whole(5, 20),
    maxAttempts: random.chance(0.8) ? 10 : 2,
    keep: random.whole(3, 12),
    timeoutMs: random.chance(0.2) ? Math.round(longestJobMs * 0.8) : null,
    longestJobMs,
  };
}

/** Many faults strike in the moments in which an instant can get lost or be run twice. */
export function retarget(fault: Fault, random: Random): Fault {
  const aim = random.next();
  return aim < 0.25 ? { ...fault, target: "claim" } : aim < 0.5 ? { ...fault, target: "run" } : fault;
}

/** The library's own timetables. Loading croner takes real time: to be done before the world begins. */
export async function timetableOf({ cron }: CronPlan): Promise<Timetable> {
  return typeof cron === "number" ? everyTimetable(cron) : cronTimetable(cron, "UTC");
}
