/**
 * When a schedule of so many seconds is due in a time zone, found by looking at
 * every second: slow, and with nothing of the library in it. A local time that
 * comes twice counts the first time; the simulated patterns have no time in a gap
 * that its end has not.
 */
import type { Timetable } from "../../cron/timetable.js";

/** How far apart two instants of one local time can be, and in which steps zones change their offset. */
const FURTHEST_MS = 3 * 3_600_000;
const STEP_MS = 30 * 60_000;
/** More than any gap between two instants. */
const LONGEST_S = 4 * 3_600;

export class Almanac implements Timetable {
  readonly #format: Intl.DateTimeFormat;
  readonly #seconds: number;
  readonly #known = new Map<number, boolean>();

  constructor(seconds: number, zone: string) {
    this.#seconds = seconds;
    this.#format = new Intl.DateTimeFormat("sv-SE", {
      timeZone: zone,
      dateStyle: "short",
      timeStyle: "medium",
    });
  }

  next(after: number): number | null {
    const first = (Math.floor(after / 1_000) + 1) * 1_000;
    for (let at = first; at < first + LONGEST_S * 1_000; at += 1_000) if (this.#isDue(at)) return at;
    return null;
  }

  latest(after: number, until: number, most: number): number[] {
    const found: number[] = [];
    for (let at = Math.floor(until / 1_000) * 1_000; at > after && found.length < most; at -= 1_000)
      if (this.#isDue(at)) found.push(at);
    return found.reverse();
  }

  #isDue(at: number): boolean {
    let due = this.#known.get(at);
    if (due === undefined) {
      due = this.#local(at).second % this.#seconds === 0 && !this.#again(at);
      this.#known.set(at, due);
    }
    return due;
  }

  /** Whether the clock on the wall has shown this before. */
  #again(at: number): boolean {
    const { text } = this.#local(at);
    for (let ago = STEP_MS; ago <= FURTHEST_MS; ago += STEP_MS)
      if (this.#local(at - ago).text === text) return true;
    return false;
  }

  #local(at: number): { readonly text: string; readonly second: number } {
    const text = this.#format.format(at);
    return { text, second: Number(text.slice(-2)) };
  }
}
