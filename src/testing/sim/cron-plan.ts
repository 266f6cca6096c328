/** What a schedule is like in a plan: how often, in which mode, and how long its jobs take. */
import type { Misfire, Mode, Overlap } from "../../cron/schedule.js";
import { cronTimetable, everyTimetable } from "../../cron/timetable.js";
import type { Timetable } from "../../cron/timetable.js";
import { Almanac } from "./almanac.js";
import type { Fault } from "./plan.js";
import type { Random } from "./random.js";

export interface CronPlan {
  /** Cron text with seconds; or a period in milliseconds, which costs a hundredth of the time. */
  readonly cron: string | number;
  /** Time zone of the text, and the true time at which the run begins: shortly before the clocks there are changed. */
  readonly zone?: { readonly name: string; readonly startMs: number };
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

/** Where clocks are changed: by an hour or by half of one, forwards and back; and where they are not. */
const CHANGES: readonly [Change, ...Change[]] = [
  ["Europe/Berlin", "2025-03-30T01:00Z"],
  ["Europe/Berlin", "2025-10-26T01:00Z"],
  ["America/St_Johns", "2025-03-09T05:30Z"],
  ["America/St_Johns", "2025-11-02T04:30Z"],
  ["Australia/Lord_Howe", "2025-10-04T15:30Z"],
  ["Australia/Lord_Howe", "2025-04-05T15:00Z"],
  ["Asia/Kathmandu", "2025-01-01T00:00Z"],
];
type Change = readonly [zone: string, at: string];

const ZONES = 0.06;

/** Some schedules by the clocks of a place, while they are changed. */
function inZone(plan: CronPlan, seconds: number, random: Random): CronPlan {
  if (!random.chance(ZONES)) return plan;
  const [name, at] = random.pick(CHANGES);
  const startMs = Date.parse(at) - random.whole(5, 45) * 1_000;
  // Named hours: such a pattern goes by the clock on the wall.
  return { ...plan, cron: `*/${seconds} * 0-23 * * *`, zone: { name, startMs } };
}

export function drawCron(random: Random, places: Random): CronPlan {
  const seconds = random.whole(1, 3);
  const periodMs = seconds * 1_000;
  const longestJobMs = Math.round(periodMs * random.between(0.4, 1.3));
  const plan: CronPlan = {
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
  return inZone(plan, seconds, places);
}

/** Many faults strike in the moments in which an instant can get lost or be run twice. */
export function retarget(fault: Fault, random: Random): Fault {
  const aim = random.next();
  return aim < 0.25 ? { ...fault, target: "claim" } : aim < 0.5 ? { ...fault, target: "run" } : fault;
}

/** The library's own timetables. Loading croner takes real time: to be done before the world begins. */
export async function timetableOf({ cron, zone }: CronPlan): Promise<Timetable> {
  return typeof cron === "number" ? everyTimetable(cron) : cronTimetable(cron, zone?.name ?? "UTC");
}

/** What the library's timetable has to agree with, where that is known by other means. */
export function almanacOf({ cron, zone }: CronPlan): Timetable | undefined {
  const seconds = typeof cron === "string" ? /^\*\/(\d+) \* 0-23 \* \* \*$/.exec(cron)?.[1] : undefined;
  return zone === undefined || seconds === undefined ? undefined : new Almanac(Number(seconds), zone.name);
}
