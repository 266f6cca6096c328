/** Exit codes, and the one line that goes with a bad one. */
import { describe, isConclaveError } from "../kit/errors.js";
import { redact } from "./secrets.js";

export const EXIT = {
  ok: 0,
  /** The answer is no: nobody leads, or not elected, or leadership lost. */
  no: 1,
  usage: 2,
  /** Not known: the store could not be asked, refused us, or holds something that is not ours. */
  unreachable: 3,
  /** Anything else: a fault that nobody foresaw, or output that could not be written. It says nothing about who leads. */
  fault: 4,
  /** What was asked for has been written down, but nobody had done it in time. */
  late: 5,
} as const;

/** The command line does not make sense. */
export class UsageError extends Error {}

/** A signal has ended the command before it was done. */
export class Stopped extends Error {
  readonly exitCode: number;

  constructor(signal: string, number: number) {
    super(`stopped by ${signal}`);
    this.exitCode = 128 + number;
  }
}

/** The library's names of options, as the flags they come from. */
const FLAGS: ReadonlyMap<string, string> = new Map([
  ["ttlMs", "--ttl"],
  ["retryMs", "--retry"],
  ["renewDeadlineMs", "--renew-deadline"],
  ["maxTermMs", "--max-term"],
  ["minTermMs", "--min-term"],
  ["timeoutMs", "--timeout"],
  ["graceMs", "--grace"],
]);

export function exitCodeOf(error: unknown): number {
  if (error instanceof UsageError) return EXIT.usage;
  if (error instanceof Stopped) return error.exitCode;
  if (!isConclaveError(error)) return EXIT.fault;
  switch (error.code) {
    case "invalid":
    case "unsupported":
      return EXIT.usage;
    case "timeout":
    case "unavailable":
    case "forbidden":
    case "conflict":
    case "token-regression":
      return EXIT.unreachable;
    case "not-leader":
    case "stale-leader":
      return EXIT.no;
    case "state":
      return EXIT.fault;
  }
}

/** One line, in the words of the command line. */
export function failureLine(error: unknown): string {
  const text = redact(describe(error));
  if (!isConclaveError(error) || error.code !== "invalid") return text;
  return text.replace(/\b[a-zA-Z]+Ms\b/g, (word) => FLAGS.get(word) ?? word);
}
