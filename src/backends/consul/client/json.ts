/**
 * JSON with whole numbers that a JavaScript number cannot hold: Consul's indexes
 * and flags have 64 bits. Long ones are put into quotes before they are parsed.
 */

/** A string, or a number. Strings are matched so that digits within them are left alone. */
const STRING_OR_NUMBER = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g;
/** Numbers of fifteen digits are exact. */
const LONG = /^\d{16,20}$/;
const DIGITS = /^\d{1,20}$/;
const LARGEST = 2n ** 64n - 1n;

/** Throws a SyntaxError for what is no JSON. */
export function parseExact(text: string): unknown {
  return JSON.parse(text.replace(STRING_OR_NUMBER, (token) => (LONG.test(token) ? `"${token}"` : token)));
}

/** An unsigned number of 64 bits as {@link parseExact} or a header has it; `undefined` if it is none. */
export function unsigned(value: unknown): bigint | undefined {
  const text = typeof value === "number" ? String(value) : value;
  if (typeof text !== "string" || !DIGITS.test(text)) return undefined;
  const number = BigInt(text);
  return number <= LARGEST ? number : undefined;
}

/** A property of what was parsed, whatever that is. */
export function property(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, name)
    ? Reflect.get(value, name)
    : undefined;
}
