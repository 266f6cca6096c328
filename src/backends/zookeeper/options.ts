/** From a URL, options and the environment to a client and a backend. */
import { invalid } from "../../kit/errors.js";
import type { Clock } from "../../seam/clock.js";
import type { ZooKeeperClient } from "./client.js";
import { DEFAULT_PORT, parseEndpoint, type TlsFiles } from "./client/endpoint.js";
import type { WireClientOptions } from "./client/wire-client.js";
import { LAYOUT_NAMES, type ZooKeeperLayout } from "./layouts.js";

/** Where ZooKeeper is, and how to talk to it. */
export interface ZooKeeperOptions {
  /** `host` or `host:port`, tried in random order. Default: ZOOKEEPER_HOSTS, then localhost:2181. */
  readonly hosts?: string | readonly string[] | undefined;
  /** Path that all elections lie below. It must exist. Default: the root. */
  readonly chroot?: string | undefined;
  /**
   * Whose recipe candidates are written by: `curator-latch` (default), Curator's
   * LeaderLatch; `curator-lock`, its LeaderSelector and InterProcessMutex, and
   * go-zookeeper; `kazoo`. All candidates of an election use the same.
   */
  readonly layout?: ZooKeeperLayout | undefined;
  /** `user:password` for ZooKeeper's digest scheme. Default: ZOOKEEPER_AUTH. */
  readonly auth?: string | undefined;
  /** Who may touch the nodes that are created: everybody (`open`, default, as Curator and kazoo do it), or only the user of `auth` (`creator`). */
  readonly acl?: "open" | "creator" | undefined;
  /** `true` for TLS with the system's authorities, or files, read anew for every connection. */
  readonly tls?: boolean | TlsFiles | undefined;
  /**
   * The servers' tickTime. A follower tells its leader of sessions every half
   * tick, so this much of each lease is not counted on. Default 2000; set it if
   * yours is higher.
   */
  readonly tickMs?: number | undefined;
  /** Told once if the servers grant another session timeout than the ttl that was asked for. Default: a process warning. */
  readonly warn?: ((message: string) => void) | undefined;
  /** A client to use instead; the connection options above do not apply. For tests. */
  readonly client?: ZooKeeperClient | undefined;
  /** Time and chance. For tests. */
  readonly clock?: Clock | undefined;
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
}

const PARAMETERS = ["ca", "cert", "key", "serverName", "layout", "acl", "tick"] as const;
type Parameter = (typeof PARAMETERS)[number];

/** Several hosts with ports are no URL to Node: this one is taken apart by hand. */
const ZOOKEEPER_URL = /^(zookeepers?):\/\/(?:([^@/?#]*)@)?([^/?#]*)(\/[^?#]*)?(?:\?([^#]*))?$/i;
const CONTROL = /[\u0000-\u001f\u007f]/;

/** What a `zookeeper://` or `zookeepers://` URL says, as options. Never shows the user part in an error. */
export function parseZooKeeperUrl(url: string): ZooKeeperOptions {
  const match = ZOOKEEPER_URL.exec(url);
  if (match === null)
    throw invalid(
      "not a ZooKeeper URL: write zookeeper://host:2181,host2:2181/chroot (zookeepers:// for TLS)",
    );
  const [, scheme = "", user, hosts = "", path = "", query = ""] = match;
  // A password that holds one of these as it is would be read as host and path, dialled, and shown.
  if (`${hosts}${path}${query}`.includes("@")) {
    throw invalid(
      'the ZooKeeper URL has an "@" after its hosts: in a user name, password, chroot or file name write / as %2F, ? as %3F, ' +
        "# as %23, @ as %40 (or put user:password into ZOOKEEPER_AUTH)",
    );
  }
  const parameters = parseQuery(query);
  const files = pick(parameters, ["ca", "cert", "key", "serverName"]);
  const secure = scheme.toLowerCase() === "zookeepers" || Object.keys(files).length > 0;
  return {
    ...(hosts !== "" && { hosts: decode(hosts).split(",") }),
    ...(path.replaceAll("/", "") !== "" && { chroot: decode(path) }),
    ...(user !== undefined && { auth: decode(user) }),
    ...(secure && { tls: files }),
    ...(parameters.has("layout") && { layout: checkLayout(parameters.get("layout")) }),
    ...(parameters.has("acl") && { acl: checkAcl(parameters.get("acl")) }),
    ...(parameters.has("tick") && { tickMs: parseDuration(parameters.get("tick")!) }),
  };
}

function parseQuery(query: string): Map<Parameter, string> {
  const parameters = new Map<Parameter, string>();
  for (const [name, value] of new URLSearchParams(query)) {
    const known = PARAMETERS.find((parameter) => parameter === name);
    if (known === undefined)
      throw invalid(
        // A name that is no word may be a part of something else that got here by mistake.
        `a ZooKeeper URL has no parameter ${/^[A-Za-z]{1,20}$/.test(name) ? `"${name}"` : "of this name"}; it knows ${PARAMETERS.join(", ")}`,
      );
    if (value === "") throw invalid(`parameter ${name} of the ZooKeeper URL is empty`);
    parameters.set(known, value);
  }
  return parameters;
}

function pick(parameters: ReadonlyMap<Parameter, string>, names: readonly Parameter[]): TlsFiles {
  return Object.fromEntries(
    names.flatMap((name) => (parameters.has(name) ? [[name, parameters.get(name)]] : [])),
  );
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalid("the ZooKeeper URL holds a broken %-sequence");
  }
}

function parseDuration(text: string): number {
  const match = /^(\d{1,6})(ms|s)$/.exec(text);
  if (match === null) throw invalid(`tick is ${JSON.stringify(text)}; write it as 2s or 2000ms`);
  return Number(match[1]) * (match[2] === "s" ? 1000 : 1);
}

function checkLayout(layout: unknown): ZooKeeperLayout {
  const known = LAYOUT_NAMES.find((name) => name === layout);
  if (known !== undefined) return known;
  throw invalid(
    `layout is ${JSON.stringify(layout)}; it must be "curator-latch" (LeaderLatch), "curator-lock" (LeaderSelector, InterProcessMutex) or "kazoo"`,
  );
}

function checkAcl(acl: unknown): "open" | "creator" {
  if (acl === "open" || acl === "creator") return acl;
  throw invalid(`acl is ${JSON.stringify(acl)}; it must be "open" or "creator"`);
}

/** Root of all nodes: empty, or a path without a slash at its end. */
export function rootOf(chroot: string | undefined): string {
  const root = `/${chroot ?? ""}`.replaceAll(/\/+/g, "/").replace(/\/$/, "");
  if (CONTROL.test(root)) throw invalid("the chroot holds a control character: remove it");
  if (root.split("/").some((part) => part === "." || part === ".."))
    throw invalid('the chroot holds "." or "..", which ZooKeeper refuses: write the whole path');
  return root;
}

const DEFAULT_TICK_MS = 2_000;

/** Checked; the default is that of ZooKeeper's own example. */
export function tickOf(tickMs: number | undefined): number {
  if (tickMs === undefined) return DEFAULT_TICK_MS;
  if (!(tickMs >= 1 && tickMs <= 60_000))
    throw invalid(`tickMs is ${String(tickMs)}; it must lie between 1 and 60000`);
  return tickMs;
}

/** Checked, and the default. */
export function layoutName(options: ZooKeeperOptions): ZooKeeperLayout {
  return options.layout === undefined ? "curator-latch" : checkLayout(options.layout);
}

export function clientOptions(options: ZooKeeperOptions): WireClientOptions {
  const env = options.env ?? process.env;
  const hosts = options.hosts ?? (env["ZOOKEEPER_HOSTS"] || `localhost:${DEFAULT_PORT}`);
  const texts = typeof hosts === "string" ? hosts.split(",") : hosts;
  // Those with an @ first, to be refused: a password may hold a comma, and must not be shown by the part before it.
  texts.filter((text) => text.includes("@")).forEach((text) => parseEndpoint(text));
  const endpoints = texts.map((text) => parseEndpoint(text));
  if (endpoints.length === 0)
    throw invalid("the list of ZooKeeper hosts is empty: name at least one host:port");
  const digest = options.auth ?? (env["ZOOKEEPER_AUTH"] || undefined);
  if (digest !== undefined && !/^[^:]+:./.test(digest))
    throw invalid(
      "the ZooKeeper credentials must be user:password (ZOOKEEPER_AUTH, or before the hosts of the URL)",
    );
  const acl = options.acl === undefined ? "open" : checkAcl(options.acl);
  if (acl === "creator" && digest === undefined)
    throw invalid('acl "creator" needs credentials: set ZOOKEEPER_AUTH=user:password (or the option auth)');
  const tls = options.tls === true ? {} : options.tls === false ? undefined : options.tls;
  if (tls !== undefined && (tls.cert === undefined) !== (tls.key === undefined))
    throw invalid(
      `a TLS client ${tls.cert === undefined ? "key was given without its certificate (cert)" : "certificate was given without its key (key)"}: give both`,
    );
  return { endpoints, tls, digest, acl, clock: options.clock };
}
