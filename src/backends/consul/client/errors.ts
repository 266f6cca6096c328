/** What a refusal of Consul means: certain or unknown, passing or permanent, and what to do. */
import { ConclaveError } from "../../../kit/errors.js";
import { printable } from "../../../kit/printable.js";

const LONGEST_QUOTE = 300;

/** The error for an answer that is none of those the request can be answered with. `what`: `creating a session`. */
export function failure(what: string, status: number, text: string): ConclaveError {
  const said = `${what}: Consul answered ${status}${text.trim() === "" ? "" : ` (${quoted(text)})`}`;
  if (status === 401 || status === 403) return forbidden(said, text);
  if (/no path to datacenter/i.test(text))
    return new ConclaveError(
      "invalid",
      `${said}; this agent knows no datacenter of that name: check dc, or whether the datacenters are joined`,
    );
  if (/invalid session ttl/i.test(text))
    return new ConclaveError(
      "invalid",
      `${said}; Consul keeps no session of this length: choose a ttl within the bounds that it names (session_ttl_min sets the lower one)`,
    );
  if (/missing node registration/i.test(text))
    // A node that was taken out of the catalog registers itself again within a moment.
    return new ConclaveError(
      "unavailable",
      `${said}; sessions belong to a node of their datacenter, and the agent that was asked is none now. If dc is set, ask an agent of that datacenter instead`,
    );
  if (/namespaces? .*enterprise|invalid query parameter/i.test(text))
    return new ConclaveError("invalid", `${said}; leave the parameter out, or ask an agent that knows it`);
  if ([400, 404, 405, 413, 415].includes(status) || (status >= 300 && status < 400))
    return new ConclaveError("invalid", `${said}; the request will not be accepted as it is`);
  return new ConclaveError("unavailable", said);
}

/** Consul puts refusals of ACLs into answers of other kinds too. */
export function isForbidden(text: string): boolean {
  return /permission denied|acl not found/i.test(text);
}

export function forbidden(said: string, text: string): ConclaveError {
  const help = /acl not found/i.test(text)
    ? "the agent does not know this ACL token: check CONSUL_HTTP_TOKEN or the token file"
    : "give the ACL token (CONSUL_HTTP_TOKEN) key write on the prefix and session write on the agent's node";
  return new ConclaveError("forbidden", `${said}; ${help}`);
}

/** An answer that no Consul gives. */
export function nonsense(what: string, detail: string): ConclaveError {
  return new ConclaveError(
    "unavailable",
    `${what}: the answer is not Consul's (${detail}); check the address, and what stands between`,
  );
}

/** Texts of others go into messages short, on one line, and without characters that steer a terminal. */
export function quoted(text: string): string {
  const clean = printable(text.replace(/[\s\p{Cc}]+/gu, " ").trim());
  return clean.length > LONGEST_QUOTE ? `${clean.slice(0, LONGEST_QUOTE)}…` : clean;
}
