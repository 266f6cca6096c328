/** Durations as people write them. Strict: what is not clearly meant is refused, with what to write instead. */

const UNITS: ReadonlyMap<string, number> = new Map([
  ["ms", 1],
  ["s", 1_000],
  ["m", 60_000],
  ["h", 3_600_000],
]);
const LONGEST_MS = 24 * 3_600_000;
const EXAMPLES = "write for example 500ms, 10s or 1m";

/** Milliseconds of `500ms`, `10s`, `1.5s`, `1m`, `1h`. Throws an error whose message says what to write. */
export function parseDuration(text: string): number {
  const match = /^(?<amount>[0-9]{1,15}(?:\.[0-9]{1,6})?)(?<unit>[a-z]*)$/.exec(text);
  const { amount, unit } = match?.groups ?? {};
  if (amount === undefined || unit === undefined) {
    throw new RangeError(`It is not a number with a unit: ${EXAMPLES}.`);
  }
  if (unit === "") throw new RangeError(`It has no unit: ${EXAMPLES}.`);
  const factor = UNITS.get(unit);
  if (factor === undefined) throw new RangeError(`The unit must be ms, s, m or h: ${EXAMPLES}.`);
  const ms = Number(amount) * factor;
  if (ms < 1) throw new RangeError(`It must be at least 1ms: ${EXAMPLES}.`);
  if (ms > LONGEST_MS) throw new RangeError(`It must be at most 24h: ${EXAMPLES}.`);
  return ms;
}

/** `10s`, `2.55s`, `500ms`: the shortest exact way to write it. */
export function formatDuration(ms: number): string {
  return ms >= 1_000 ? `${Math.round(ms) / 1_000}s` : `${Math.round(ms)}ms`;
}
