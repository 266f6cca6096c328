/** Exit codes, and the one line that goes with a bad one. */
import { describe, isConclaveError } from "../core/errors.js";

export const EXIT = {
  ok: 0,
  /** The answer is no: nobody leads, or not elected, or office lost. */
  no: 1,
  usage: 2,
  /** The store could not be asked. */
  unreachable: 3,
} as const;

/** The command line does not make sense. */
export class UsageError extends Error {}

/** The library's names of options, as the flags they come from. */
const FLAGS: ReadonlyMap<string, string> = new Map([
  ["ttlMs", "--ttl"],
  ["retryMs", "--retry"],
  ["renewDeadlineMs", "--renew-deadline"],
  ["maxTermMs", "--max-term"],
  ["timeoutMs", "--timeout"],
  ["graceMs", "--grace"],
]);

export function exitCodeOf(error: unknown): number {
  if (error instanceof UsageError) return EXIT.usage;
  if (!isConclaveError(error)) return EXIT.no;
  switch (error.code) {
    case "invalid":
    case "unsupported":
      return EXIT.usage;
    case "timeout":
    case "unavailable":
    case "forbidden":
    case "conflict":
      return EXIT.unreachable;
    case "state":
    case "not-leader":
    case "stale-leader":
    case "token-regression":
      return EXIT.no;
  }
}

/** One line, in the words of the command line. */
export function failureLine(error: unknown): string {
  const text = describe(error).replace(/\s*\n\s*/g, " ");
  if (!isConclaveError(error) || error.code !== "invalid") return text;
  return text.replace(/\b[a-zA-Z]+Ms\b/g, (word) => FLAGS.get(word) ?? word);
}
