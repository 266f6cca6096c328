import { ConclaveError, type ErrorCode } from "../../../kit/errors.js";
import { maskSecrets } from "../../../kit/secrets.js";

/**
 * What an error means for whoever asked:
 * - `retriable`: the same request may succeed later; whether this one took effect is unknown.
 * - `permanent`: it will be refused again until somebody changes something.
 * - `lost`: etcd says for certain that the lease does not exist.
 */
export type EtcdErrorKind = "retriable" | "permanent" | "lost";

/** An error that etcd answered with, or that kept it from answering. */
export class EtcdError extends ConclaveError {
  readonly kind: EtcdErrorKind;
  /** gRPC status, where etcd itself answered. */
  readonly status: number | undefined;

  constructor(
    kind: EtcdErrorKind,
    code: ErrorCode,
    message: string,
    more: { status?: number; cause?: unknown } = {},
  ) {
    super(code, message, { retriable: kind !== "permanent", cause: more.cause });
    this.name = "EtcdError";
    this.kind = kind;
    this.status = more.status;
  }
}

const INVALID_ARGUMENT = 3;
const DEADLINE_EXCEEDED = 4;
const PERMISSION_DENIED = 7;
const UNIMPLEMENTED = 12;
const UNAVAILABLE = 14;
const UNAUTHENTICATED = 16;

/** The text etcd sends, cut: it is data from elsewhere. A proxy may have put our request into it. */
function quote(text: string, secrets: readonly string[]): string {
  const printable = maskSecrets(text.slice(0, 4096), secrets).replace(/[^\x20-\x7e]+/g, " ");
  return printable.length > 200 ? `${printable.slice(0, 200)}…` : printable;
}

/**
 * Turns a gRPC status into one clear error. Unknown ones are taken for passing
 * faults: only what is known to be permanent is permanent.
 */
export function statusError(
  status: number,
  detail: string,
  who: string,
  secrets: readonly string[] = [],
): EtcdError {
  const said = quote(detail, secrets);
  if (said.includes("lease not found"))
    return new EtcdError("lost", "unavailable", `etcd at ${who} no longer knows the lease (${said})`, {
      status,
    });
  const denied = denial(status, said, who);
  if (denied !== undefined) return new EtcdError("permanent", "forbidden", denied, { status });
  if (status === DEADLINE_EXCEEDED) {
    const message = `etcd at ${who} did not finish in time (${said}); whether it took effect is unknown`;
    return new EtcdError("retriable", "timeout", message, { status });
  }
  if (said.includes("database space exceeded")) {
    const message = `etcd at ${who} is out of space (${said}): compact and defragment it, then run etcdctl alarm disarm`;
    return new EtcdError("retriable", "unavailable", message, { status });
  }
  if (status === UNIMPLEMENTED) {
    const message = `${who} does not speak etcd's v3 API (${said}): is it etcd 3.4 or newer?`;
    return new EtcdError("permanent", "unsupported", message, { status });
  }
  if (status === INVALID_ARGUMENT)
    return new EtcdError("permanent", "invalid", `etcd at ${who} refused the request (${said})`, { status });
  const message = `etcd at ${who} could not serve the request (${said}, gRPC status ${status})`;
  return new EtcdError("retriable", "unavailable", message, { status });
}

/** What to do about a request that etcd denies this user; `undefined`: it does not. */
function denial(status: number, said: string, who: string): string | undefined {
  if (said.includes("invalid user ID or password"))
    return `etcd at ${who} refused the user name or password: check ETCD_USERNAME and ETCD_PASSWORD (or the options username and password)`;
  if (said.includes("user name is empty"))
    return `etcd at ${who} demands authentication: set ETCD_USERNAME and ETCD_PASSWORD (or the options username and password)`;
  if (said.includes("permission denied") || status === PERMISSION_DENIED)
    return (
      `etcd at ${who} denied permission: grant the user's role readwrite on the election's key prefix ` +
      `(etcdctl role grant-permission <role> readwrite --prefix=true <prefix>)`
    );
  if (status === UNAUTHENTICATED) return `etcd at ${who} refused the authentication token (${said})`;
  return undefined;
}

/** An answer that is not gRPC: a proxy's trouble passes, a server that is not etcd does not. */
export function httpError(status: number, who: string): EtcdError {
  const passing = status >= 500 || status === 408 || status === 429;
  return statusError(passing ? UNAVAILABLE : UNIMPLEMENTED, `HTTP status ${status}`, who);
}

/** What came is no message of etcd's: whether the request took effect is unknown. */
export function unreadable(who: string | undefined, cause: unknown): EtcdError {
  return new EtcdError("retriable", "unavailable", `etcd at ${who ?? "?"} sent an unreadable answer`, {
    cause,
  });
}

/** gRPC's error text, percent-encoded in its header. */
export function decodeMessage(value: string | string[] | undefined): string {
  const raw = Array.isArray(value) ? value.join(" ") : (value ?? "");
  try {
    return decodeURIComponent(raw);
  } catch {
    return raw;
  }
}

/**
 * The token aged, the users changed, or authentication was switched on since: a
 * new token helps, and the request was certainly not carried out.
 */
export function isStaleToken(error: unknown): boolean {
  if (!(error instanceof EtcdError)) return false;
  if (error.status === UNAUTHENTICATED) return true;
  return /revision of auth store is old|demands authentication/.test(error.message);
}

/** This member cannot reach the others: another one may. */
export function isMemberCutOff(error: unknown): boolean {
  if (!(error instanceof EtcdError) || error.kind !== "retriable") return false;
  return /no leader|request timed out|not capable|server stopped|unhealthy/.test(error.message);
}

/** Why no connection came about, in words that say what to do. */
export function dialError(error: unknown, who: string, secure = false): EtcdError {
  if (error instanceof EtcdError) return error;
  const code = error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
  if (code.startsWith("ERR_SSL") || code === "EPROTO") {
    return new EtcdError(
      "permanent",
      "forbidden",
      `no TLS connection to etcd at ${who} (${code}): check that it serves TLS, and the client certificate if it demands one ` +
        `(?cert=file&key=file)`,
      { cause: error },
    );
  }
  if (code.includes("CERT") || code.includes("SIGNATURE") || code.startsWith("ERR_TLS")) {
    return new EtcdError(
      "permanent",
      "forbidden",
      `the certificate of etcd at ${who} is not trusted (${code}): give the CA that signed it (?ca=file), ` +
        `and use a host name that is in the certificate`,
      { cause: error },
    );
  }
  if (secure && code === "ECONNRESET") {
    // It may also be a server that is just going down: worth another try.
    return new EtcdError(
      "retriable",
      "unavailable",
      `no TLS connection to etcd at ${who} (${code}): check that it serves TLS; if it does not, write etcd:// without TLS files`,
      { cause: error },
    );
  }
  const hint = code === "" ? "" : ` (${code})`;
  return new EtcdError(
    "retriable",
    "unavailable",
    `cannot reach etcd at ${who}${hint}: check that it runs there and that the address is right`,
    {
      cause: error,
    },
  );
}
