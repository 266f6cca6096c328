/** From a URL and the environment to what a client and a backend are made of. */
import type { Clock } from "../../seam/clock.js";
import { invalid } from "../../kit/errors.js";

/** How elections are kept: `hash` is the library's own; `redlock` shares locks with redlock and ShedLock, without fencing tokens. */
export type RedisLayout = "hash" | "redlock";

/** Files for TLS, in PEM. */
export interface RedisTlsFiles {
  /** Authorities to trust instead of the system's. */
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  /** The name that the server's certificate must bear, if it is not the host's. */
  readonly serverName?: string;
}

/** How elections use Redis. */
export interface RedisOptions {
  /** Put before every key. Default `conclave:`; in the layout `redlock` nothing. The same for all candidates. */
  readonly prefix?: string | undefined;
  readonly layout?: RedisLayout | undefined;
  /**
   * Whether leadership is granted only by a server that has been primary for a ttl, where it may have lost writes
   * before. Default `true`. Without it a failover or a restart can make two leaders.
   */
  readonly quarantine?: boolean | undefined;
  /** Time and chance. For tests. */
  readonly clock?: Clock | undefined;
}

/** What a URL says. */
export interface RedisAddress {
  readonly hosts: readonly { readonly host: string; readonly port: number }[];
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly database: number;
  readonly tls: RedisTlsFiles | undefined;
  /** Name of the primary that the hosts, which are Sentinels, watch. */
  readonly sentinel: string | undefined;
  readonly sentinelPassword: string | undefined;
  readonly cluster: boolean;
  readonly options: RedisOptions;
}

type Environment = Readonly<Record<string, string | undefined>>;

const PARAMETERS = [
  "cluster",
  "sentinel",
  "prefix",
  "layout",
  "quarantine",
  "ca",
  "cert",
  "key",
  "serverName",
] as const;
type Parameter = (typeof PARAMETERS)[number];
type Parameters = ReadonlyMap<Parameter, string>;

/** Several hosts with ports are no URL to Node: this one is taken apart by hand. */
const REDIS_URL = /^(rediss?):\/\/(?:([^@/?#]*)@)?([^/?#]*)(?:\/([^?#]*))?(?:\?([^#]*))?$/i;
const DEFAULT_PORT = 6379;
const SENTINEL_PORT = 26379;

/** Never shows the user part in an error. */
export function parseRedisUrl(url: string, env: Environment = process.env): RedisAddress {
  const match = REDIS_URL.exec(url);
  if (match === null)
    throw invalid(
      "not a Redis URL: write redis://host:6379/0, several hosts with commas (rediss:// for TLS)",
    );
  const [, scheme = "", user, hosts = "", path = "", query = ""] = match;
  // A password that holds one of these as it is would be read as host and path, dialled, and shown.
  if (`${hosts}${path}${query}`.includes("@"))
    throw invalid(
      'the Redis URL has an "@" after its hosts: in a user name or password write / as %2F, ? as %3F, # as %23, @ as %40 ' +
        "(or put the password into REDIS_PASSWORD)",
    );
  const parameters = parseQuery(query);
  const sentinel = parameters.get("sentinel");
  const cluster = flag(parameters, "cluster") ?? false;
  if (cluster && sentinel !== undefined) throw invalid("a Redis URL names a cluster or a Sentinel, not both");
  const { username, password } = parseUser(user, env);
  return {
    hosts: parseHosts(decode(hosts), sentinel === undefined ? DEFAULT_PORT : SENTINEL_PORT),
    username,
    password,
    database: parseDatabase(path, cluster),
    tls: tlsOf(scheme.toLowerCase() === "rediss", parameters),
    sentinel,
    sentinelPassword: env["REDIS_SENTINEL_PASSWORD"] || undefined,
    cluster,
    options: {
      prefix: parameters.get("prefix"),
      layout: checkLayout(parameters.get("layout")),
      quarantine: flag(parameters, "quarantine"),
    },
  };
}

export function checkLayout(layout: unknown): RedisLayout | undefined {
  if (layout === undefined || layout === "hash" || layout === "redlock") return layout;
  throw invalid(
    `layout is ${JSON.stringify(layout)}; it must be "hash" (the default) or "redlock" (the locks of redlock and ShedLock, without fencing tokens)`,
  );
}

function parseQuery(query: string): Parameters {
  const parameters = new Map<Parameter, string>();
  for (const [name, value] of new URLSearchParams(query)) {
    const known = PARAMETERS.find((parameter) => parameter === name);
    if (known === undefined)
      throw invalid(
        // A name that is no word may be a part of something else that got here by mistake.
        `a Redis URL has no parameter ${/^[A-Za-z]{1,20}$/.test(name) ? `"${name}"` : "of this name"}; it knows ${PARAMETERS.join(", ")}`,
      );
    if (value === "") throw invalid(`parameter ${name} of the Redis URL is empty`);
    parameters.set(known, value);
  }
  return parameters;
}

function flag(parameters: Parameters, name: "cluster" | "quarantine"): boolean | undefined {
  const value = parameters.get(name);
  if (value === undefined || value === "true" || value === "false")
    return value === undefined ? undefined : value === "true";
  throw invalid(`${name} in the Redis URL is true or false, not ${JSON.stringify(value)}`);
}

function parseUser(
  user: string | undefined,
  env: Environment,
): { username: string | undefined; password: string | undefined } {
  const [name = "", ...rest] = (user ?? "").split(":");
  const username = decode(name) || env["REDIS_USERNAME"] || undefined;
  const password = (rest.length > 0 ? decode(rest.join(":")) : "") || env["REDIS_PASSWORD"] || undefined;
  if (username !== undefined && password === undefined)
    throw invalid(
      "a Redis user name was given without a password: write redis://user:password@host, or set REDIS_PASSWORD",
    );
  return { username, password };
}

function parseHosts(text: string, defaultPort: number): RedisAddress["hosts"] {
  return (text === "" ? "localhost" : text).split(",").map((item) => {
    const match = /^(\[[0-9a-f:.]+\]|[^:[\]\s]+)(?::(\d{1,5}))?$/i.exec(item);
    const port = match?.[2] === undefined ? defaultPort : Number(match[2]);
    if (match === null || port < 1 || port > 65_535)
      throw invalid("a host of the Redis URL cannot be read: write host or host:port, several with commas");
    return { host: match[1]!.replace(/^\[|\]$/g, ""), port };
  });
}

function parseDatabase(path: string, cluster: boolean): number {
  if (path === "") return 0;
  if (!/^\d{1,5}$/.test(path))
    throw invalid("the path of a Redis URL is the number of a database: redis://host/0");
  if (cluster && path !== "0") throw invalid("a Redis cluster has only database 0: leave the number out");
  return Number(path);
}

function tlsOf(secure: boolean, parameters: Parameters): RedisTlsFiles | undefined {
  const names = ["ca", "cert", "key", "serverName"] as const;
  const files: RedisTlsFiles = Object.fromEntries(
    names.flatMap((name) => (parameters.has(name) ? [[name, parameters.get(name)]] : [])),
  );
  if (!secure && Object.keys(files).length > 0)
    throw invalid("ca, cert, key and serverName are for TLS: write rediss:// instead of redis://");
  if ((files.cert === undefined) !== (files.key === undefined))
    throw invalid("a TLS client certificate needs both cert and key");
  return secure ? files : undefined;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalid("the Redis URL holds a broken %-sequence");
  }
}
