/**
 * Who may ask what. A sidecar on loopback is reachable by every page the user
 * has open: the Host check stops DNS rebinding, the Origin check and the token
 * stop pages from changing anything.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { isIPv6 } from "node:net";

export interface Access {
  /** Whether the server listens beyond loopback: then every route but the probes needs the token. */
  readonly exposed: boolean;
  readonly token: string | undefined;
  /** Host names by which this server may be called, without port. */
  readonly hosts: ReadonlySet<string>;
}

export interface Refusal {
  readonly status: 401 | 403;
  readonly reason: string;
}

const LOOPBACK = new Set(["localhost", "127.0.0.1", "::1"]);

export function isLoopback(host: string): boolean {
  return LOOPBACK.has(host) || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host);
}

/** The names a server bound to `host` answers to. */
export function hostsOf(host: string, more: readonly string[]): Set<string> {
  return new Set([...LOOPBACK, host, ...more].map((name) => name.toLowerCase()));
}

/** `null` = allowed. */
export function refuse(request: IncomingMessage, access: Access, changes: boolean): Refusal | null {
  if (!access.hosts.has(hostName(request.headers.host))) {
    return { status: 403, reason: "this Host is not ours; name it with --allow-host if it is" };
  }
  const { origin } = request.headers;
  if (origin !== undefined && !sameOrigin(origin, request.headers.host)) {
    return { status: 403, reason: "pages of another origin may not ask here" };
  }
  if (!changes && !access.exposed) return null;
  if (access.token === undefined) {
    return {
      status: 403,
      reason: "this needs a token, and none is set; start with --token-file or CONCLAVE_SIDECAR_TOKEN",
    };
  }
  if (equal(bearer(request.headers.authorization), access.token)) return null;
  return { status: 401, reason: "send the token: Authorization: Bearer …" };
}

/** Host header to name: `[::1]:80` → `::1`, `localhost:80` → `localhost`. */
function hostName(host: string | undefined): string {
  if (host === undefined) return "";
  const bracketed = /^\[([0-9a-f:.]+)\](?::\d+)?$/i.exec(host);
  if (bracketed) return isIPv6(bracketed[1]!) ? bracketed[1]!.toLowerCase() : "";
  return host.replace(/:\d+$/, "").toLowerCase();
}

function sameOrigin(origin: string, host: string | undefined): boolean {
  return host !== undefined && (origin === `http://${host}` || origin === `https://${host}`);
}

function bearer(header: string | undefined): string {
  return /^Bearer (\S+)$/i.exec(header ?? "")?.[1] ?? "";
}

/** In constant time, whatever the lengths. */
function equal(a: string, b: string): boolean {
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(a), digest(b)) && a.length > 0;
}

/** On every answer. `'self'` is enough for the page: it has no inline script and loads nothing from elsewhere. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store",
};
