/** From a URL, options and the environment to a client and a backend. */
import type { Clock } from "../../seam/clock.js";
import { invalid } from "../../kit/errors.js";
import type { HttpClientOptions } from "./client/http-client.js";
import type {
  Address,
  ConsulRequest,
  ConsulResponse,
  ConsulTlsFiles,
  Transport,
} from "./client/transport.js";
import { HttpTransport } from "./client/transport.js";
import type { ConsulClient } from "./client.js";
import type { ConsulLayout } from "./keys.js";

/** Where Consul is, and how to talk to it. */
export interface ConsulOptions {
  /** `host`, `host:port`, `http://host:port` or `https://host:port` of an agent. Default: CONSUL_HTTP_ADDR, then 127.0.0.1:8500. */
  readonly address?: string | undefined;
  /** Put before every election's name, a slash between. Default: nothing. */
  readonly prefix?: string | undefined;
  /** `lock` (default): `<name>/.lock`, as the command `consul lock`. `key`: `<name>`, as Go's `LockKey(name)`. */
  readonly layout?: ConsulLayout | undefined;
  /** Datacenter. Default: the agent's own. */
  readonly datacenter?: string | undefined;
  /** Namespace and partition, of Consul Enterprise. Default: CONSUL_NAMESPACE, CONSUL_PARTITION. */
  readonly namespace?: string | undefined;
  readonly partition?: string | undefined;
  /** ACL token. Default: CONSUL_HTTP_TOKEN. */
  readonly token?: string | undefined;
  /** File with the ACL token, read for every request. Default: CONSUL_HTTP_TOKEN_FILE. */
  readonly tokenFile?: string | undefined;
  /** `true` for TLS with the system's authorities, or files. Default: CONSUL_HTTP_SSL, CONSUL_CACERT, CONSUL_CLIENT_CERT, CONSUL_CLIENT_KEY. */
  readonly tls?: boolean | ConsulTlsFiles | undefined;
  /**
   * How long Consul keeps a lock closed after a session ended with it. Default: the
   * ttl, at most 60 s, so that a session that ends early (its node left the
   * cluster) lets nobody lead before the old leader's deadline. Less is faster
   * after a crash and gives that up.
   */
  readonly lockDelayMs?: number | undefined;
  /** Shortest ttl, where the servers' `session_ttl_min` was changed. Default 10 s, as Consul's own. */
  readonly minTtlMs?: number | undefined;
  /** Sends requests another way, through a mesh for example. The options of address and TLS do not apply. */
  readonly send?: ((request: ConsulRequest, signal: AbortSignal) => Promise<ConsulResponse>) | undefined;
  /** A client to use instead; it is not closed with the backend, and no option of the connection applies. */
  readonly client?: ConsulClient | undefined;
  /** Time and chance. For tests. */
  readonly clock?: Clock | undefined;
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
}

const PARAMETERS = [
  ...[
    "dc",
    "ns",
    "partition",
    "layout",
    "ca",
    "cert",
    "key",
    "serverName",
    "tokenFile",
    "lockDelay",
    "minTtl",
  ],
] as const;

const DEFAULT_PORT = 8500;
const LONGEST_LOCK_DELAY_MS = 60_000;
const ADDRESS = /^(?:(https?):\/\/)?(\[[0-9a-fA-F:.]+\]|[^\s/?#@:]+)(?::(\d{1,5}))?\/?$/;
const CONTROL = /[\u0000-\u001f\u007f]/;

/** What a `consul://` or `consuls://` URL says, as options. */
export function parseConsulUrl(url: URL): ConsulOptions {
  if (url.username !== "" || url.password !== "")
    throw invalid(
      "a Consul URL has no user or password: put the ACL token into CONSUL_HTTP_TOKEN, or name its file with ?tokenFile=",
    );
  const given = new Map<string, string>();
  for (const [name, value] of url.searchParams) {
    if (!PARAMETERS.some((known) => known === name))
      throw invalid(
        // A name that is no word may be a part of something else that got here by mistake.
        `a Consul URL has no parameter ${/^[A-Za-z]{1,20}$/.test(name) ? `"${name}"` : "of this name"}; it knows ${PARAMETERS.join(", ")}`,
      );
    if (value === "") throw invalid(`parameter ${name} of the Consul URL is empty`);
    given.set(name, value);
  }
  const [ca, cert, key, serverName] = ["ca", "cert", "key", "serverName"].map((name) => given.get(name));
  const files = { ca, cert, key, serverName };
  const secure = url.protocol === "consuls:" || Object.values(files).some((file) => file !== undefined);
  const layout = given.get("layout");
  const [lockDelay, minTtl] = [given.get("lockDelay"), given.get("minTtl")];
  return {
    ...(url.host !== "" && { address: url.host }),
    ...(url.pathname.replaceAll("/", "") !== "" && { prefix: decoded(url.pathname.slice(1)) }),
    ...(given.has("dc") && { datacenter: given.get("dc") }),
    ...(given.has("ns") && { namespace: given.get("ns") }),
    ...(given.has("partition") && { partition: given.get("partition") }),
    ...(given.has("tokenFile") && { tokenFile: given.get("tokenFile") }),
    ...(layout !== undefined && { layout: checkLayout(layout) }),
    ...(secure && { tls: files }),
    ...(lockDelay !== undefined && { lockDelayMs: duration("lockDelay", lockDelay) }),
    ...(minTtl !== undefined && { minTtlMs: duration("minTtl", minTtl) }),
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalid("the Consul URL holds a broken %-sequence");
  }
}

function duration(name: string, text: string): number {
  const match = /^(\d{1,6})(ms|s)$/.exec(text);
  if (match === null) throw invalid(`${name} is ${JSON.stringify(text)}; write it as 5s or 500ms`);
  return Number(match[1]) * (match[2] === "s" ? 1000 : 1);
}

export function checkLayout(layout: unknown): ConsulLayout {
  if (layout === "lock" || layout === "key") return layout;
  throw invalid(
    `layout is ${JSON.stringify(layout)}; it must be "lock" (as the command consul lock) or "key" (as Go's LockKey)`,
  );
}

/** Root of all keys: empty, or ending with a slash. */
export function rootOf(prefix: string | undefined): string {
  const root = (prefix ?? "").replace(/^\/+|\/+$/g, "");
  if (CONTROL.test(root)) throw invalid("the key prefix holds a control character: remove it");
  if (root.split("/").some((part) => part === "." || part === "..") || root.includes("//"))
    throw invalid(
      `the key prefix ${JSON.stringify(root)} has a part that is empty or made of dots: change it`,
    );
  return root === "" ? "" : `${root}/`;
}

export function checkNumbers({ lockDelayMs, minTtlMs }: ConsulOptions): void {
  if (lockDelayMs !== undefined && !(lockDelayMs >= 0 && lockDelayMs <= LONGEST_LOCK_DELAY_MS))
    throw invalid(
      `lockDelayMs is ${String(lockDelayMs)}; Consul keeps a delay of 0 to ${LONGEST_LOCK_DELAY_MS} ms`,
    );
  if (minTtlMs !== undefined && !(minTtlMs >= 1_000 && minTtlMs <= 86_400_000))
    throw invalid(`minTtlMs is ${String(minTtlMs)}; it must lie between 1000 and 86400000`);
}

export function clientOptions(options: ConsulOptions): HttpClientOptions {
  const env = options.env ?? process.env;
  const set = (name: string): string | undefined => env[name] || undefined;
  const token = options.token ?? (options.tokenFile === undefined ? set("CONSUL_HTTP_TOKEN") : undefined);
  const namespace = options.namespace ?? set("CONSUL_NAMESPACE");
  const partition = options.partition ?? set("CONSUL_PARTITION");
  if (token !== undefined && CONTROL.test(token))
    throw invalid("the ACL token holds a control character: check CONSUL_HTTP_TOKEN (or the option token)");
  return {
    transport: transportOf(options, set),
    token,
    tokenFile: options.tokenFile ?? set("CONSUL_HTTP_TOKEN_FILE"),
    basicAuth: set("CONSUL_HTTP_AUTH"),
    parameters: {
      ...(options.datacenter !== undefined && { dc: options.datacenter }),
      ...(namespace !== undefined && { ns: namespace }),
      ...(partition !== undefined && { partition }),
    },
    clock: options.clock,
  };
}

function transportOf(options: ConsulOptions, set: (name: string) => string | undefined): Transport {
  const { send } = options;
  if (send !== undefined) return handedIn(send);
  const { scheme, ...address } = parseAddress(options.address ?? set("CONSUL_HTTP_ADDR") ?? "127.0.0.1");
  const files: ConsulTlsFiles = {
    ...{ ca: set("CONSUL_CACERT"), cert: set("CONSUL_CLIENT_CERT"), key: set("CONSUL_CLIENT_KEY") },
    serverName: set("CONSUL_TLS_SERVER_NAME"),
    ...(typeof options.tls === "object" && given(options.tls)),
  };
  if ((files.cert === undefined) !== (files.key === undefined))
    throw invalid(
      `a TLS client ${files.cert === undefined ? "key was given without its certificate (cert)" : "certificate was given without its key (key)"}: give both`,
    );
  const asked = options.tls ?? (set("CONSUL_HTTP_SSL") === "true" ? true : undefined);
  const secure = scheme === "https" || (scheme !== "http" && asked !== undefined && asked !== false);
  return new HttpTransport(address, secure ? files : undefined);
}

function given(files: ConsulTlsFiles): ConsulTlsFiles {
  return Object.fromEntries(Object.entries(files).filter(([, value]) => value !== undefined));
}

function parseAddress(text: string): Address & { readonly scheme: string | undefined } {
  // What precedes an @ may be a password: it is not shown.
  if (text.includes("@"))
    throw invalid("the address of Consul has a user in it: put the ACL token into CONSUL_HTTP_TOKEN instead");
  if (text.startsWith("unix:"))
    throw invalid("Consul on a unix socket is not supported by address: hand in the option send instead");
  const match = ADDRESS.exec(text);
  const port = Number(match?.[3] ?? DEFAULT_PORT);
  if (match === null || port < 1 || port > 65_535)
    throw invalid(`the address of Consul is ${JSON.stringify(text)}; write host:port or https://host:port`);
  return { scheme: match[1], host: match[2]!, port };
}

function handedIn(send: NonNullable<ConsulOptions["send"]>): Transport {
  return {
    send: (request, stop) => {
      const controller = new AbortController();
      stop.addEventListener("abort", () => controller.abort(stop.reason));
      return send(request, controller.signal);
    },
    distrust: () => {},
    close: () => {},
  };
}
