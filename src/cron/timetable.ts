/**
 * When something is due: pure, and the same on every replica. Scheduled times come from
 * the pattern, never from the clock of whoever looks: that is what makes them
 * keys.
 */
import { ConclaveError, describe, invalid } from "../kit/errors.js";
import { Zone } from "./zone.js";

/** Scheduled times in epoch milliseconds. */
export interface Timetable {
  /** The first scheduled time after `after`; `null` = there is none any more. */
  next(after: number): number | null;
  /** The last scheduled times in (after, until], at most `most` of them, in rising order. */
  latest(after: number, until: number, most: number): number[];
}

/** The little of croner that is used. */
interface Pattern {
  nextRun(previous: Date): Date | null;
  previousRuns(count: number, reference: Date): Date[];
}
type PatternClass = new (pattern: string, options: { timezone: string; paused: true }) => Pattern;

const HOUR_MS = 60 * 60 * 1000;
/** More candidates than that without a hit mean a pattern that (almost) never fires. */
const MOST_STEPS = 100_000;
const BATCH = 16;

/** A timetable from cron text, in a time zone. Needs the package `croner`. */
export async function cronTimetable(cron: string, timeZone: string): Promise<Timetable> {
  const Cron = await loadCroner();
  const zone = new Zone(timeZone);
  const clockTime = !everyHour(cron);
  let pattern: Pattern;
  try {
    pattern = new Cron(cron, { timezone: clockTime ? "UTC" : timeZone, paused: true });
  } catch (error) {
    throw invalid(`cron text ${JSON.stringify(cron)} cannot be read: ${describe(error)}`);
  }
  return clockTime ? new ClockTimetable(pattern, zone) : new ElapsedTimetable(pattern);
}

/**
 * For patterns that run in every hour the change of the clock does not matter:
 * they go by time elapsed, through the hour that comes twice and past the one
 * that is left out. Patterns that name hours mean the clock on the wall.
 */
function everyHour(cron: string): boolean {
  const fields = cron.trim().split(/\s+/);
  if (fields.length === 1) return fields[0]!.toLowerCase() === "@hourly";
  return ["*", "*/1", "?"].includes(fields[fields.length === 5 ? 1 : 2] ?? "");
}

class ElapsedTimetable implements Timetable {
  readonly #pattern: Pattern;

  constructor(pattern: Pattern) {
    this.#pattern = pattern;
  }

  next(after: number): number | null {
    return nextOf(this.#pattern, after);
  }

  latest(after: number, until: number, most: number): number[] {
    return collect(backwards(this.#pattern, until), after, until, most);
  }
}

/** The pattern is laid on the wall clock's own line of time, and each time on it stands for one scheduled time. */
class ClockTimetable implements Timetable {
  readonly #pattern: Pattern;
  readonly #zone: Zone;

  constructor(pattern: Pattern, zone: Zone) {
    this.#pattern = pattern;
    this.#zone = zone;
  }

  next(after: number): number | null {
    let naive: number | null = this.#zone.naive(after);
    for (let step = 0; step < MOST_STEPS; step++) {
      naive = nextOf(this.#pattern, naive);
      if (naive === null) return null;
      const instant = this.#zone.instant(naive);
      if (instant > after) return instant;
    }
    return null;
  }

  latest(after: number, until: number, most: number): number[] {
    // In the second pass of a repeated hour the wall clock shows less than has already counted.
    const furthest = Math.max(...[0, -3, 3].map((hours) => this.#zone.offset(until + hours * HOUR_MS)));
    return collect(this.#instants(until + furthest), after, until, most);
  }

  *#instants(naiveUntil: number): Generator<number, void, undefined> {
    for (const naive of backwards(this.#pattern, naiveUntil)) yield this.#zone.instant(naive);
  }
}

/** From falling scheduled times, those in (after, until], at most `most`, each once, in rising order. */
function collect(falling: Iterable<number>, after: number, until: number, most: number): number[] {
  const found = new Set<number>();
  for (const instant of falling) {
    if (instant <= after || found.size === most) break;
    if (instant <= until) found.add(instant);
  }
  return [...found].reverse();
}

function nextOf(pattern: Pattern, after: number): number | null {
  return pattern.nextRun(new Date(after))?.getTime() ?? null;
}

/** The pattern's times from `until` (included) back into the past. */
function* backwards(pattern: Pattern, until: number): Generator<number, void, undefined> {
  // croner looks at whole seconds and leaves out the one it is given.
  let reference = (Math.floor(until / 1000) + 1) * 1000;
  for (;;) {
    const batch = pattern.previousRuns(BATCH, new Date(reference)).map((date) => date.getTime());
    for (const time of batch) if (time <= until) yield time;
    if (batch.length < BATCH) return;
    reference = batch.at(-1)!;
  }
}

async function loadCroner(): Promise<PatternClass> {
  try {
    return (await import("croner")).Cron;
  } catch (cause) {
    throw new ConclaveError("unsupported", "cron text needs the package croner: npm install croner", {
      cause,
    });
  }
}

/** Every so many milliseconds of the epoch, for tests and for schedules that need no calendar. */
export function everyTimetable(periodMs: number): Timetable {
  if (!(periodMs >= 1)) throw invalid(`a period is at least one millisecond, got ${periodMs}`);
  return {
    next: (after) => (Math.floor(after / periodMs) + 1) * periodMs,
    latest: (after, until, most) => {
      const found: number[] = [];
      for (
        let at = Math.floor(until / periodMs) * periodMs;
        at > after && found.length < most;
        at -= periodMs
      )
        found.push(at);
      return found.reverse();
    },
  };
}
