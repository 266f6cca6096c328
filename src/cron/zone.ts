/**
 * Wall time of one time zone, without a calendar of our own: `Intl` knows the
 * rules. A *naive* time is what the wall clock shows, counted in milliseconds as
 * if that clock were in UTC.
 */
import { invalid } from "../kit/errors.js";

const DAY_MS = 24 * 60 * 60 * 1000;

export class Zone {
  readonly name: string;
  readonly #format: Intl.DateTimeFormat;

  constructor(name: string) {
    try {
      this.#format = new Intl.DateTimeFormat("en-US", {
        timeZone: name,
        calendar: "gregory",
        numberingSystem: "latn",
        hourCycle: "h23",
        year: "numeric",
        month: "2-digit",
        day: "2-digit",
        hour: "2-digit",
        minute: "2-digit",
        second: "2-digit",
        era: "short",
      });
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      throw invalid(
        `time zone ${JSON.stringify(name)} is not known; use a name like "UTC" or "Europe/Berlin"`,
      );
    }
    this.name = name;
  }

  /** What the wall clock shows at an instant. */
  naive(instant: number): number {
    const part: Record<string, number> = {};
    for (const { type, value } of this.#format.formatToParts(instant)) part[type] = Number(value);
    const seconds = Date.UTC(
      part["year"]!,
      part["month"]! - 1,
      part["day"],
      part["hour"],
      part["minute"],
      part["second"],
    );
    return seconds + (((instant % 1000) + 1000) % 1000);
  }

  /** Wall clock minus UTC. */
  offset(instant: number): number {
    return this.naive(instant) - instant;
  }

  /**
   * The one instant at which a naive time counts: of two (the hour that comes
   * twice) the first; for none (the hour that is left out) the end of the gap.
   * Rising naive times never give falling instants.
   */
  instant(naive: number): number {
    const before = this.offset(naive - DAY_MS);
    const after = this.offset(naive + DAY_MS);
    const candidates = [naive - before, naive - after].filter((instant) => this.naive(instant) === naive);
    if (candidates.length > 0) return Math.min(...candidates);
    return this.#change(naive - Math.max(before, after), naive - Math.min(before, after));
  }

  /** The instant in (from, to] at which the offset changes. */
  #change(from: number, to: number): number {
    const old = this.offset(from);
    let [low, high] = [from, to];
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (this.offset(middle) === old) low = middle;
      else high = middle;
    }
    return high;
  }
}
