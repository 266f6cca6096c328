const BRAND = Symbol.for("conclave.error");

/** Stable, documented codes: match on these, not on messages. */
export type ErrorCode =
  /** An option, name, duration or URL was refused. Nothing was done. */
  | "invalid"
  /** The call was refused in the present state (already campaigning, closed, …). */
  | "state"
  /** The term is over: its holder must not act. */
  | "not-leader"
  /** A resource has seen a newer token than this one. */
  | "stale-leader"
  /** The store handed out a token not higher than one seen before. */
  | "token-regression"
  /** The store did not answer in time; whether it acted is unknown. */
  | "timeout"
  /** The store could not be reached, or answered with a passing fault. */
  | "unavailable"
  /** The store refused us: credentials or permissions. */
  | "forbidden"
  /** Something in the store is not ours or not readable, and was left alone. */
  | "conflict"
  /** The environment cannot do what was asked (missing package, unsafe directory, …). */
  | "unsupported";

/** Details of a {@link ConclaveError}. */
export interface ConclaveErrorOptions {
  /** Whether trying again, unchanged, may succeed. */
  readonly retriable?: boolean;
  readonly cause?: unknown;
}

/**
 * The one base class. `code` is stable API; the message says what was wrong and
 * what to do; `retriable` tells a loop from a bug report.
 */
export class ConclaveError extends Error {
  readonly code: ErrorCode;
  readonly retriable: boolean;

  static {
    // On the prototype: two copies of the library recognise each other's errors by it.
    Object.defineProperty(this.prototype, BRAND, { value: true });
  }

  constructor(code: ErrorCode, message: string, options: ConclaveErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "ConclaveError";
    this.code = code;
    this.retriable = options.retriable ?? (code === "timeout" || code === "unavailable");
  }
}

/** The leadership this call needed is over. Stop the work; do not retry under the same term. */
export class NotLeaderError extends ConclaveError {
  readonly token: bigint;

  constructor(token: bigint, message: string) {
    super("not-leader", message);
    this.name = "NotLeaderError";
    this.token = token;
  }
}

/** A resource refused a write because it has already seen a newer leader. */
export class StaleLeaderError extends ConclaveError {
  readonly token: bigint;
  readonly highest: bigint;

  constructor(token: bigint, highest: bigint, message?: string) {
    super(
      "stale-leader",
      message ??
        `token ${token} is older than ${highest}, which this resource has already seen: a newer leader has taken over; stop the work of the old one`,
    );
    this.name = "StaleLeaderError";
    this.token = token;
    this.highest = highest;
  }
}

/** True for errors of this library, also of another copy of it. */
export function isConclaveError(error: unknown): error is ConclaveError {
  return typeof error === "object" && error !== null && BRAND in error;
}

/** Unknown errors are taken for passing ones: only what says it is permanent is permanent. */
export function isRetriable(error: unknown): boolean {
  return !isConclaveError(error) || error.retriable;
}

/** A bad option: always permanent, always before anything was done. */
export function invalid(message: string): ConclaveError {
  return new ConclaveError("invalid", message);
}

/** One line about any thrown value, without a stack. Never throws, whatever was thrown. */
export function describe(error: unknown): string {
  try {
    return textOf(error).replace(/\s*[\r\n]+\s*/g, " ");
  } catch {
    return "something was thrown that cannot be shown as text";
  }
}

function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.message !== "") return error.message;
  // Node's own error for a host with several addresses has no message, only a code.
  return "code" in error && typeof error.code === "string" ? error.code : error.name;
}
