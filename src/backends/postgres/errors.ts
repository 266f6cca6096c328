/**
 * What an error of PostgreSQL means. One with an SQLSTATE is the server's answer:
 * the statement was rolled back, nothing was done. Without one the connection was
 * lost, and whether it was done is unknown.
 */
import { ConclaveError, describe, isConclaveError } from "../../kit/errors.js";
import { printable } from "../../kit/printable.js";
import { maskSecrets } from "../../kit/secrets.js";

/** The server's code, five characters; `undefined` if the error is not an answer of the server. */
export function sqlState(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null || !("code" in error)) return undefined;
  const { code } = error;
  // Node's own codes begin with E, as no SQLSTATE does.
  return typeof code === "string" && /^(?!E)[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

/** Two transactions got in each other's way and ours gave in: it was not done. */
export function isBeaten(error: unknown): boolean {
  const state = sqlState(error);
  return state === "40001" || state === "40P01";
}

export function isMissingTable(error: unknown): boolean {
  return sqlState(error) === "42P01";
}

/** The server takes no writes: another host may be the primary by now. */
export function isReadOnly(error: unknown): boolean {
  const state = sqlState(error);
  return state === "25006" || (state === "55000" && /recovery is in progress/.test(describe(error)));
}

/** The session is over, or of no use: the next statement needs a new one. */
export function endsSession(error: unknown): boolean {
  const state = sqlState(error);
  return state === undefined || state.startsWith("57P") || state.startsWith("08") || isReadOnly(error);
}

export interface Doing {
  /** `reading election "x"`. */
  readonly what: string;
  /** Must not be in a message. */
  readonly secrets: readonly string[];
  /** What creates the table. */
  readonly ddl: string;
}

/** The error for users: what was wrong, and what to do. */
export function failure(error: unknown, doing: Doing): unknown {
  if (isConclaveError(error) || isAbort(error)) return error;
  const state = sqlState(error);
  const text = printable(maskSecrets(describe(error), doing.secrets)).slice(0, 400);
  const said = `${doing.what}: PostgreSQL answered "${text}"${state === undefined ? "" : ` (${state})`}`;
  if (state === undefined) return lost(text, doing);
  const advice = adviceFor(state, doing, isReadOnly(error));
  return new ConclaveError(advice.code, `${said}; ${advice.todo}`, { cause: new ServerError(state) });
}

/** All that is kept of the server's answer: its details may quote what was sent. */
export class ServerError extends Error {
  readonly code: string;

  constructor(code: string) {
    super(`SQLSTATE ${code}`);
    this.name = "ServerError";
    this.code = code;
  }
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError";
}

/** No connection came about, so nothing was sent. What the server itself refuses is left as it is. */
export function unreachable(error: unknown, host: string, secrets: readonly string[]): unknown {
  if (isConclaveError(error) || sqlState(error) !== undefined) return error;
  const text = printable(maskSecrets(describe(error), secrets)).slice(0, 400);
  if (NO_PASSWORD.test(text)) return lost(text, { what: `connecting to ${host}`, secrets, ddl: "" });
  return new ConclaveError(
    "unavailable",
    `PostgreSQL at ${host} cannot be reached (${text}): check host, port, TLS settings and that it runs`,
  );
}

/** pg's own complaint where the server asks for a password and it knows none. */
const NO_PASSWORD = /password must be a|no password supplied/i;

/** What only asks has no effect. */
const READS = /^(?:reading|asking|listing) /;

function lost(text: string, { what }: Doing): ConclaveError {
  if (NO_PASSWORD.test(text))
    return new ConclaveError(
      "forbidden",
      `${what}: the server asks for a password and none was given: write it into the URL, or set PGPASSWORD`,
    );
  return new ConclaveError(
    "unavailable",
    `${what}: no answer of PostgreSQL (${text})${READS.test(what) ? "" : "; whether it took effect is unknown"}`,
  );
}

interface Advice {
  readonly code: "forbidden" | "invalid" | "conflict" | "unavailable";
  readonly todo: string;
}

function adviceFor(state: string, { ddl }: Doing, readOnly: boolean): Advice {
  if (readOnly)
    return {
      code: "unavailable",
      todo: "the server takes no writes (a standby, or default_transaction_read_only): name the primary, or all hosts, in the URL",
    };
  const known = ADVICE[state];
  if (known !== undefined) return typeof known === "function" ? known(ddl) : known;
  return { code: "unavailable", todo: PASSING };
}

const PASSING = "it was not done";

const ADVICE: Readonly<Record<string, Advice | ((ddl: string) => Advice)>> = {
  "28P01": { code: "forbidden", todo: "the password is not accepted: correct the URL or PGPASSWORD" },
  "28000": {
    code: "forbidden",
    todo: "the role is unknown or may not connect from here: check the user name and pg_hba.conf",
  },
  "3D000": { code: "invalid", todo: "create the database first, or name another one" },
  "3F000": { code: "invalid", todo: "create the schema first (CREATE SCHEMA), or name another one" },
  "42501": (ddl) => ({
    code: "forbidden",
    todo: `the role needs SELECT, INSERT and UPDATE on the table; if it may not create it, let its owner run: ${ddl}`,
  }),
  "42703": { code: "conflict", todo: "the table is not one of Conclave: name another one" },
  "42804": { code: "conflict", todo: "the table is not one of Conclave: name another one" },
  "42809": { code: "conflict", todo: "the name belongs to something that is no table: name another one" },
  "42P10": {
    code: "conflict",
    todo: "the table is not one of Conclave (its key is not unique): name another one",
  },
  "22021": { code: "invalid", todo: "PostgreSQL keeps no NUL characters: remove them" },
  "53100": { code: "unavailable", todo: `the server's disk is full: make room; ${PASSING}` },
  "53300": { code: "unavailable", todo: `raise max_connections, or use a pooler; ${PASSING}` },
  "57014": { code: "unavailable", todo: `it took too long (is the table locked?); ${PASSING}` },
};
