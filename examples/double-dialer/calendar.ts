/** Accelerated time: a day of the story lasts four seconds. Nine o'clock stays nine o'clock. */
import { cronTimetable } from "conclave/cron";
import type { Timetable } from "conclave/cron";

const DAY_MS = 4_000;
const REAL_DAY_MS = 24 * 60 * 60 * 1000;
const STORY = Date.UTC(2026, 10, 16, 8, 55);

/** The call list's timetable, `0 9 * * *`, in a story that begins at five to nine, at the instant `start`. */
export async function callTimes(start: number): Promise<Timetable> {
  const nine = await cronTimetable("0 9 * * *", "UTC");
  const story = (real: number): number => STORY + ((real - start) * REAL_DAY_MS) / DAY_MS;
  const real = (instant: number): number => Math.round(start + ((instant - STORY) * DAY_MS) / REAL_DAY_MS);
  return {
    next: (after) => {
      // Rounding must not give the same instant twice.
      for (let next = nine.next(story(after)); next !== null; next = nine.next(next))
        if (real(next) > after) return real(next);
      return null;
    },
    latest: (after, until, most) =>
      nine
        .latest(story(after), story(until), most)
        .map(real)
        .filter((instant) => instant > after && instant <= until),
  };
}

/** Which day of the story an instant falls on, from 1. */
export function dayOf(instant: number, start: number): number {
  return 1 + Math.floor((instant - start) / DAY_MS);
}
