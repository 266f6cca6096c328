/**
 * Kubernetes MicroTime: RFC 3339 in UTC with exactly six digits of fraction.
 * The server refuses any other count, and client-go writes no other. These times inform people and mark renewals; nothing is ever
 * decided by comparing them with a clock.
 */
const SHAPE = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?Z$/;
const DAY_MS = 86_400_000;
/** The last instant of the year 9999: later ones have no four-digit year. */
const LATEST_MS = daysBefore(10_000, 1, 1) * DAY_MS - 1;

/**
 * `epochMs` as MicroTime, and never the same text as `previous`: a write that
 * changes nothing gets no new resourceVersion and is no renewal to anyone.
 */
export function microTime(epochMs: number, previous?: unknown): string {
  const whole = Math.min(Math.max(0, Math.trunc(Number.isFinite(epochMs) ? epochMs : 0)), LATEST_MS);
  const iso = utc(whole);
  const text = `${iso}000Z`;
  return text === previous ? `${iso}001Z` : text;
}

/** Epoch milliseconds, or `undefined` if it is no time in UTC at all. */
export function parseMicroTime(value: unknown): number | undefined {
  const match = typeof value === "string" ? SHAPE.exec(value) : null;
  if (match === null) return undefined;
  const [year, month, day, hours, minutes, seconds] = match.slice(1, 7).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  if (month < 1 || month > 12 || day < 1 || day > 31 || hours > 23 || minutes > 59 || seconds > 59)
    return undefined;
  const fraction = Number((match[7] ?? "").padEnd(3, "0").slice(0, 3));
  return daysBefore(year, month, day) * DAY_MS + ((hours * 60 + minutes) * 60 + seconds) * 1000 + fraction;
}

/**
 * Dates are reckoned by hand, in years that begin in March, so that the leap
 * day is the last: `Date` may be used in kit/clock.ts only.
 */
function daysBefore(year: number, month: number, day: number): number {
  const y = month <= 2 ? year - 1 : year;
  const dayOfYear = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + day - 1;
  return 365 * y + Math.floor(y / 4) - Math.floor(y / 100) + Math.floor(y / 400) + dayOfYear - 719_468;
}

/** `2026-01-02T03:04:05.678` */
function utc(epochMs: number): string {
  const days = Math.floor(epochMs / DAY_MS);
  const rest = epochMs - days * DAY_MS;
  const since = days + 719_468;
  const era = Math.floor(since / 146_097);
  const dayOfEra = since - era * 146_097;
  const leaps = Math.floor(dayOfEra / 1460) - Math.floor(dayOfEra / 36_524) + Math.floor(dayOfEra / 146_096);
  const yearOfEra = Math.floor((dayOfEra - leaps) / 365);
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const shifted = Math.floor((5 * dayOfYear + 2) / 153);
  const day = dayOfYear - Math.floor((153 * shifted + 2) / 5) + 1;
  const month = shifted < 10 ? shifted + 3 : shifted - 9;
  const year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0);
  const time = [Math.floor(rest / 3_600_000), Math.floor(rest / 60_000) % 60, Math.floor(rest / 1000) % 60];
  return `${pad(year, 4)}-${pad(month, 2)}-${pad(day, 2)}T${time.map((part) => pad(part, 2)).join(":")}.${pad(rest % 1000, 3)}`;
}

function pad(value: number, width: number): string {
  return String(value).padStart(width, "0");
}
