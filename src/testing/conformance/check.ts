/** The suite's own small assertions: it is handed a runner, not an assertion library. */

/** A promise of the seam was not kept. */
export class ConformanceFailure extends Error {
  constructor(message: string) {
    super(message);
    this.name = "ConformanceFailure";
  }
}

/**
 * The machine was too slow for this attempt to say anything (it stalled for
 * longer than a lease lasts): tried again, and a failure only if it stays so.
 */
export class Inconclusive extends Error {
  constructor(message: string) {
    super(message);
    this.name = "Inconclusive";
  }
}

export function check(condition: boolean, message: string): asserts condition {
  if (!condition) throw new ConformanceFailure(message);
}

export function equal(actual: unknown, expected: unknown, what: string): void {
  check(Object.is(actual, expected), `${what}: expected ${show(expected)}, got ${show(actual)}`);
}

/** For what must be there: a hold, a leader, an entry. */
export function present<T>(value: T | null | undefined, what: string): T {
  if (value === null || value === undefined) throw new ConformanceFailure(`${what}: got ${show(value)}`);
  return value;
}

/** The promise must reject; returns what it rejected with. */
export async function rejects(promise: Promise<unknown>, what: string): Promise<unknown> {
  let value: unknown;
  try {
    value = await promise;
  } catch (error) {
    return error;
  }
  throw new ConformanceFailure(`${what}: expected a rejection, got ${show(value)}`);
}

export function show(value: unknown): string {
  if (typeof value === "bigint") return `${value}n`;
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  const text = JSON.stringify(value, (_, part: unknown) => (typeof part === "bigint" ? `${part}n` : part));
  if (text === undefined) return String(value);
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}
