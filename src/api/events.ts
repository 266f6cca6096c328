/** What an election tells. */
import type { Guarantees, Leader } from "../seam/backend.js";
import type { Term, TermEnd, TransferResult } from "./term.js";

/** What an {@link Election} tells its listeners. */
export interface ElectionEvents {
  /** A term has begun, after this long a wait. */
  elected: {
    readonly term: Term;
    readonly waitedMs: number;
    /** What the backend promises about this leadership. */
    readonly guarantees: Guarantees;
  };
  /** A term is over: exactly one for each `elected`. */
  ended: { readonly term: Term; readonly end: TermEnd };
  /** Renewals fail, but the deadline has not passed: still leading, perhaps not for long. */
  jeopardy: { readonly term: Term; readonly error: unknown };
  /** A renewal succeeded again. */
  safe: { readonly term: Term };
  /** One try to renew, for metrics. `remainingMs` is what was left when the answer came. */
  renewal: {
    readonly term: Term;
    readonly ok: boolean;
    readonly latencyMs: number;
    readonly remainingMs: number;
  };
  /** Who leads, whenever it changes; `null` = nobody. Followed only while someone listens. */
  leader: { readonly leader: Leader | null };
  /** This candidate's term was handed over to a named candidate, with this result, seen this long after the lease was given back. */
  transferred: {
    readonly term: Term;
    readonly to: string;
    readonly result: TransferResult;
    readonly tookMs: number;
  };
  /** Something went wrong and is being dealt with. Nobody has to listen. */
  error: { readonly error: unknown };
}

/** Name of an event of an {@link Election}. */
export type EventName = keyof ElectionEvents;
/** A listener for one kind of event. */
export type Listener<E extends EventName> = (event: ElectionEvents[E]) => void;

/**
 * What a logger is given beside the text: `election`, `candidate`, `backend`,
 * `token` (decimal, while leading) and, with an error, `err` with `type`,
 * `message`, `stack` and, for errors of this library, `code`.
 */
export type LogFields = Readonly<Record<string, unknown>>;

/**
 * `console`, pino, bunyan and winston fit. Messages are single lines without
 * secrets. pino and bunyan are called with the fields first, as they expect;
 * `console` gets the text alone, and the stack if your own code threw.
 */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}
