/** What both ends of a fenced HTTP request agree on. */
import type { StaleLeaderError } from "../kit/errors.js";

/** Request: the caller's token, in decimal. */
export const TOKEN_HEADER = "Fencing-Token";
/** Answer 409: the highest token the resource has seen. It tells our refusal from any other conflict. */
export const HIGHEST_HEADER = "Fencing-Token-Highest";

export interface Refusal {
  readonly status: 400 | 409 | 428 | 503;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export function refusal(
  status: Refusal["status"],
  code: string,
  message: string,
  more: Record<string, string> = {},
): Refusal {
  const headers = { "content-type": "application/json", "cache-control": "no-store" };
  return { status, headers, body: JSON.stringify({ error: { code, message, ...more } }) };
}

export function staleRefusal(error: StaleLeaderError): Refusal {
  const [token, highest] = [error.token.toString(), error.highest.toString()];
  const { status, headers, body } = refusal(409, error.code, error.message, { token, highest });
  return { status, headers: { ...headers, [HIGHEST_HEADER.toLowerCase()]: highest }, body };
}
