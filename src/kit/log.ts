/**
 * One way to write to the loggers that people have. pino and bunyan take fields
 * first, winston and most others after the message; `console` prints objects over
 * several lines, so it gets the text alone, and the stack of an error.
 */
import { describe, isConclaveError } from "./errors.js";
import { printable } from "./printable.js";
import { maskUrls } from "./urls.js";

type Level = "debug" | "info" | "warn" | "error";
type Write = (...args: unknown[]) => void;

/** An error as fields: nothing of it but these, since errors of clients may hold what they were opened with. */
interface ErrorFields {
  readonly type: string;
  readonly message: string;
  readonly code?: string;
  readonly stack?: string;
}

export interface LogEntry {
  readonly level: Level;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly error?: unknown;
  /** The error was thrown by the user's own code: `console` shows its stack. */
  readonly showStack?: boolean;
}

/** Never throws: a logger must not end a term. */
export function writeLog(logger: object, { level, message, fields, error, showStack }: LogEntry): void {
  try {
    const write: unknown = Reflect.get(logger, level);
    if (typeof write !== "function") return;
    const say = (write as Write).bind(logger);
    const text = printable(message);
    const err = error === undefined ? undefined : errorFields(error);
    if (isConsole(logger))
      say(showStack === true && err?.stack !== undefined ? `${text}\n${err.stack}` : text);
    else {
      const all = err === undefined ? fields : { ...fields, err };
      if (takesFieldsFirst(logger)) say(all, text);
      else say(text, all);
    }
  } catch {
    // It was worth a try.
  }
}

function isConsole(logger: object): boolean {
  return Object.prototype.toString.call(logger) === "[object console]";
}

/** `bindings` is pino's, `addSerializers` bunyan's. */
function takesFieldsFirst(logger: object): boolean {
  return ["bindings", "addSerializers"].some((name) => typeof Reflect.get(logger, name) === "function");
}

function errorFields(error: unknown): ErrorFields {
  const message = maskUrls(describe(error));
  if (!(error instanceof Error)) return { type: typeof error, message };
  const { name: type, stack } = error;
  return {
    type,
    message,
    ...(isConclaveError(error) && { code: error.code }),
    ...(typeof stack === "string" && { stack: maskUrls(stack) }),
  };
}
