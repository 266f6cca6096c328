/** What a refusal of the API server means: certain or unknown, passing or permanent, and what to do. */
import { ConclaveError } from "../../kit/errors.js";
import { printable } from "../../kit/printable.js";

/** An answer that is neither success nor a plain "not current". */
export interface Refusal {
  readonly status: number;
  /** `reason` of the Status object, "Forbidden" for example. */
  readonly reason: string;
  readonly message: string;
}

/** Reads the Status object of a failed answer. Whatever it is, something printable comes out. */
export function refusalOf(status: number, body: string): Refusal {
  try {
    const parsed: unknown = JSON.parse(body);
    if (typeof parsed === "object" && parsed !== null) {
      const { reason, message } = parsed as Record<string, unknown>;
      return { status, reason: quoted(reason, 60), message: quoted(message, 300) };
    }
  } catch {
    // Not JSON: a proxy in between, perhaps.
  }
  return { status, reason: "", message: quoted(body, 120) };
}

/** The error for a refused request. `what` names the request: `updating Lease default/jobs`. */
export function failure(what: string, refusal: Refusal): ConclaveError {
  const said = `${what}: the API server answered ${refusal.status}${refusal.message === "" ? "" : ` (${refusal.message})`}`;
  switch (refusal.status) {
    case 401:
      return new ConclaveError(
        "forbidden",
        `${said}; the credentials are not accepted: renew the token or certificate`,
      );
    case 403:
      return new ConclaveError(
        "forbidden",
        `${said}; grant the service account a Role with get, create, update and watch on leases in this namespace (deploy/kubernetes/rbac.yaml)`,
      );
    case 404:
      return new ConclaveError("invalid", `${said}; create the namespace first, or name another one`);
    case 400:
    case 405:
    case 406:
    case 413:
    case 415:
    case 422:
      return new ConclaveError("invalid", `${said}; the request will not be accepted as it is`);
    default:
      return new ConclaveError("unavailable", said);
  }
}

/** Texts of others go into messages short, on one line, and without characters that steer a terminal. */
function quoted(value: unknown, longest: number): string {
  if (typeof value !== "string") return "";
  const clean = printable(value.replace(/[\s\p{Cc}]+/gu, " ").trim());
  return clean.length > longest ? `${clean.slice(0, longest)}…` : clean;
}

/** Seconds of a Retry-After header in milliseconds; `undefined` if there is none that makes sense. */
export function retryAfterMs(header: string | string[] | undefined): number | undefined {
  if (typeof header !== "string" || !/^\d{1,6}$/.test(header.trim())) return undefined;
  return Number(header) * 1000;
}
