/** From a URL, options and the environment to a client and a backend. */
import type { Clock } from "../../seam/clock.js";
import { invalid } from "../../kit/errors.js";
import type { EtcdLayout } from "./backend.js";
import type { EtcdClient } from "./client.js";
import { DEFAULT_PORT, type Endpoint, parseEndpoint, type TlsFiles } from "./client/endpoint.js";
import type { EtcdClientOptions } from "./client/grpc-client.js";

/** Where etcd is, and how to talk to it. */
export interface EtcdOptions {
  /** `host`, `host:port` or `https://host:port`. Default: ETCD_ENDPOINTS, ETCD_ENDPOINT, then localhost:2379. */
  readonly endpoints?: string | readonly string[] | undefined;
  /** Put before every election's name, a slash between. Default: nothing. */
  readonly prefix?: string | undefined;
  /** `queue` (default): as Go's `concurrency.Election`. `key`: one key, as hand-written programs do it. */
  readonly layout?: EtcdLayout | undefined;
  /** `true` for TLS with the system's authorities, or files, read anew for every connection. */
  readonly tls?: boolean | TlsFiles | undefined;
  /** Default: ETCD_USERNAME and ETCD_PASSWORD. */
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  /** Longest a dial of one endpoint may take. Default 5 s. */
  readonly dialTimeoutMs?: number | undefined;
  /** A client to use instead; it is not closed with the backend, and the connection options above do not apply. */
  readonly client?: EtcdClient | undefined;
  /** Time and chance. For tests. */
  readonly clock?: Clock | undefined;
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
}

const PARAMETERS = ["ca", "cert", "key", "serverName", "layout", "dialTimeout"] as const;
type Parameter = (typeof PARAMETERS)[number];

/** Several hosts with ports are no URL to Node: this one is taken apart by hand. */
const ETCD_URL = /^(etcds?):\/\/(?:([^@/?#]*)@)?([^/?#]*)(\/[^?#]*)?(?:\?([^#]*))?$/i;
const CONTROL = /[\u0000-\u001f\u007f]/;

/** What an `etcd://` or `etcds://` URL says, as options. Never shows the user part in an error. */
export function parseEtcdUrl(url: string): EtcdOptions {
  const match = ETCD_URL.exec(url);
  if (match === null) {
    throw invalid(
      "not an etcd URL: write etcd://host:2379,host2:2379/optional/prefix?ca=file (etcds:// for TLS)",
    );
  }
  const [, scheme = "", user, hosts = "", path = "", query = ""] = match;
  // A password that holds one of these as it is would be read as host and path, dialled, and shown.
  if (`${hosts}${path}${query}`.includes("@")) {
    throw invalid(
      'the etcd URL has an "@" after its hosts: in a user name, password, prefix or file name write / as %2F, ? as %3F, ' +
        "# as %23, @ as %40 (or put the password into ETCD_PASSWORD)",
    );
  }
  const parameters = parseQuery(query);
  const files: TlsFiles = pick(parameters, ["ca", "cert", "key", "serverName"]);
  const secure = scheme.toLowerCase() === "etcds" || Object.keys(files).length > 0;
  const dialTimeout = parameters.get("dialTimeout");
  return {
    ...(hosts !== "" && { endpoints: decode(hosts).split(",") }),
    ...(path.replaceAll("/", "") !== "" && { prefix: decode(path) }),
    ...(parameters.has("layout") && { layout: checkLayout(parameters.get("layout")) }),
    ...(secure && { tls: files }),
    ...(user !== undefined && parseUser(user)),
    ...(dialTimeout !== undefined && { dialTimeoutMs: parseDuration(dialTimeout) }),
  };
}

function parseQuery(query: string): Map<Parameter, string> {
  const parameters = new Map<Parameter, string>();
  for (const [name, value] of new URLSearchParams(query)) {
    const known = PARAMETERS.find((parameter) => parameter === name);
    if (known === undefined)
      throw invalid(
        // A name that is no word may be a part of something else that got here by mistake.
        `an etcd URL has no parameter ${/^[A-Za-z]{1,20}$/.test(name) ? `"${name}"` : "of this name"}; it knows ${PARAMETERS.join(", ")}`,
      );
    if (value === "") throw invalid(`parameter ${name} of the etcd URL is empty`);
    parameters.set(known, value);
  }
  return parameters;
}

function pick(parameters: ReadonlyMap<Parameter, string>, names: readonly Parameter[]): TlsFiles {
  return Object.fromEntries(
    names.flatMap((name) => (parameters.has(name) ? [[name, parameters.get(name)]] : [])),
  );
}

function parseUser(user: string): { username: string; password?: string } {
  const [username = "", ...password] = user.split(":");
  return { username: decode(username), ...(password.length > 0 && { password: decode(password.join(":")) }) };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalid("the etcd URL holds a broken %-sequence");
  }
}

function parseDuration(text: string): number {
  const match = /^(\d{1,6})(ms|s)$/.exec(text);
  if (match === null) throw invalid(`dialTimeout is ${JSON.stringify(text)}; write it as 5s or 500ms`);
  return Number(match[1]) * (match[2] === "s" ? 1000 : 1);
}

function checkLayout(layout: unknown): EtcdLayout {
  if (layout === "queue" || layout === "key") return layout;
  throw invalid(
    `layout is ${JSON.stringify(layout)}; it must be "queue" (as Go's concurrency.Election) or "key" (one key)`,
  );
}

/** Root of all keys: empty, or ending with a slash. A leading slash is kept: to etcd it is a character like any other. */
export function rootOf(prefix: string | undefined): string {
  if (prefix === undefined || prefix === "") return "";
  if (CONTROL.test(prefix)) throw invalid("the key prefix holds a control character: remove it");
  return prefix.endsWith("/") ? prefix : `${prefix}/`;
}

export function clientOptions(options: EtcdOptions): EtcdClientOptions {
  const env = options.env ?? process.env;
  const { endpoints, secure } = resolveEndpoints(
    options.endpoints ?? (env["ETCD_ENDPOINTS"] || env["ETCD_ENDPOINT"] || `localhost:${DEFAULT_PORT}`),
  );
  const tls = options.tls === true || options.tls === undefined ? {} : options.tls;
  const username = options.username ?? (env["ETCD_USERNAME"] || undefined);
  const password = options.password ?? env["ETCD_PASSWORD"];
  if (username !== undefined && password === undefined) {
    throw invalid(
      "an etcd user name was given without a password: set ETCD_PASSWORD (or the option password)",
    );
  }
  if (options.layout !== undefined) checkLayout(options.layout);
  if (typeof tls === "object" && (tls.cert === undefined) !== (tls.key === undefined)) {
    throw invalid(
      `a TLS client ${tls.cert === undefined ? "key was given without its certificate (cert)" : "certificate was given without its key (key)"}: give both`,
    );
  }
  const { dialTimeoutMs } = options;
  if (dialTimeoutMs !== undefined && !(dialTimeoutMs >= 1 && dialTimeoutMs <= 600_000)) {
    throw invalid(`dialTimeoutMs is ${String(dialTimeoutMs)}; it must lie between 1 and 600000`);
  }
  return {
    endpoints,
    tls: tls !== false && (secure || options.tls !== undefined) ? tls : undefined,
    credentials: username === undefined || password === undefined ? undefined : { username, password },
    dialTimeoutMs,
    clock: options.clock,
  };
}

function resolveEndpoints(given: string | readonly string[]): {
  endpoints: readonly Endpoint[];
  secure: boolean;
} {
  const texts = typeof given === "string" ? given.split(",") : given;
  // Those with an @ first, to be refused: a password may hold a comma, and must not be shown by the part before it.
  texts.filter((text) => text.includes("@")).forEach((text) => parseEndpoint(text));
  const list = texts.map((text) => parseEndpoint(text));
  if (list.length === 0) throw invalid("the list of etcd endpoints is empty: name at least one host:port");
  const secure = list.filter((endpoint) => endpoint.secure === true).length;
  if (secure > 0 && list.some((endpoint) => endpoint.secure === false)) {
    throw invalid("etcd endpoints mix http:// and https://: use one of them for all");
  }
  return { endpoints: list.map(({ host, port }) => ({ host, port })), secure: secure > 0 };
}
