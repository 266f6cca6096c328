/**
 * How to reach one API server, and as whom. Credentials are asked for before
 * every request: service account tokens rotate on disk while the process runs.
 */
import type { Agent } from "node:http";

/** What one request needs for TLS and identity. Never logged, never in a message. */
export interface Credentials {
  readonly authorization?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly ca?: string | Buffer | undefined;
  readonly cert?: string | Buffer | undefined;
  readonly key?: string | Buffer | undefined;
  readonly passphrase?: string | undefined;
  readonly servername?: string | undefined;
  readonly insecure?: boolean | undefined;
  /** Only from a user's KubeConfig that brings its own way to connect, a proxy for example. */
  readonly agent?: Agent | undefined;
}

export interface Access {
  /** Where the configuration came from, for messages: a path or "in-cluster". */
  readonly origin: string;
  readonly server: URL;
  /** The namespace the configuration names, if it names one. */
  readonly namespace: string | undefined;
  credentials(): Promise<Credentials>;
  /** Forgets what was read, so that the next request reads it afresh. Called after a 401. */
  refresh(): Promise<void>;
}

/** What of these must not appear in a message, also if a server or a proxy quotes the request it refused. */
export function secretsOf({ authorization, headers, key, passphrase }: Credentials): string[] {
  const [scheme = "", value = ""] = authorization?.split(/\s+/, 2) ?? [];
  const basic = scheme.toLowerCase() === "basic" ? Buffer.from(value, "base64").toString("utf8") : "";
  const password = basic.slice(basic.indexOf(":") + 1);
  const telling = Object.entries(headers ?? {}).filter(([name]) => TELLING_HEADER.test(name));
  return [
    value,
    basic,
    password,
    ...telling.map(([, text]) => text),
    passphrase ?? "",
    key?.toString() ?? "",
  ];
}

const TELLING_HEADER = /auth|token|cookie|key|secret|session/i;

/** Whether two answers of `credentials` would authenticate differently. */
export function sameIdentity(a: Credentials, b: Credentials): boolean {
  const text = (value: string | Buffer | undefined): string => (value === undefined ? "" : value.toString());
  return (
    a.authorization === b.authorization &&
    text(a.cert) === text(b.cert) &&
    text(a.key) === text(b.key) &&
    JSON.stringify(a.headers ?? {}) === JSON.stringify(b.headers ?? {})
  );
}
