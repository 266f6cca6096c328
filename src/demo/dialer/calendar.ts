/** Accelerated time: a day lasts three seconds. A real list would say `cron: "0 9 * * *"`. */
import { everyTimetable } from "../../cron/index.js";
import type { Timetable } from "../../cron/index.js";

export const DAY_MS = 3_000;

const daily = everyTimetable(DAY_MS);

/** Nine o'clock on every day after the one whose nine o'clock was `before`. */
export function nineOClock(before: number): Timetable {
  const since = (instant: number): number => Math.max(0, instant - before);
  return {
    next: (after) => before + daily.next(since(after))!,
    latest: (after, until, most) =>
      daily.latest(since(after), until - before, most).map((sinceThen) => before + sinceThen),
  };
}
