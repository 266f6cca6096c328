/** What a `postgres://` URL says. Several hosts with ports are no URL to Node: it is taken apart by hand. */
import type { ClientConfig } from "pg";
import { invalid } from "../../kit/errors.js";

export interface PostgresLayouts {
  readonly schema?: string;
  readonly table?: string;
  readonly layout?: "record" | "shedlock";
  readonly quarantine?: boolean;
  /** `false`, or `host:port` of a connection that does not go through a pooler. */
  readonly listen?: false | string;
}

export interface ParsedUrl extends PostgresLayouts {
  /** One configuration of pg for each host. */
  readonly hosts: readonly ClientConfig[];
  /** For listening, where the URL names another host for it. */
  readonly listenHosts: readonly ClientConfig[] | undefined;
  readonly secrets: readonly string[];
}

const POSTGRES_URL = /^postgres(?:ql)?:(?:\/\/(?:([^@/?#]*)@)?([^/?#]*)(\/[^?#]*)?)?(?:\?([^#]*))?$/i;
const OWN = ["schema", "table", "layout", "quarantine", "listen"] as const;
type Own = (typeof OWN)[number];
/** What pg takes from a URL. */
const PASSED = [
  ...["host", "port", "user", "password", "application_name", "fallback_application_name", "options"],
  ...["ssl", "sslmode", "sslcert", "sslkey", "sslrootcert", "sslnegotiation", "uselibpqcompat"],
  ...["client_encoding"],
];
/** What other programs write into such URLs and what is so here anyway. */
const IGNORED = ["target_session_attrs", "connect_timeout"];

export function parsePostgresUrl(url: string): ParsedUrl {
  const match = POSTGRES_URL.exec(url);
  if (match === null)
    throw invalid(
      "not a PostgreSQL URL: write postgres://user@host:5432,host2:5432/database?sslmode=verify-full; in a user name or password write / as %2F, ? as %3F, # as %23, @ as %40 (or set PGPASSWORD)",
    );
  const [, user, hostList = "", path = "", query = ""] = match;
  if (`${hostList}${path}`.includes("@"))
    throw invalid(
      'the PostgreSQL URL has an "@" after its hosts: in a user name or password write / as %2F, ? as %3F, # as %23, @ as %40 (or set PGPASSWORD)',
    );
  const { own, passed } = parseQuery(query);
  const rest = passed.size > 0 ? `?${passed.toString()}` : "";
  const config = (host: string): ClientConfig => ({
    connectionString: `postgres://${user === undefined ? "" : `${user}@`}${checkHost(host)}${path}${rest}`,
    application_name: passed.get("application_name") ?? "conclave",
    keepAlive: true,
  });
  const { listen, ...layouts } = own;
  return {
    ...layouts,
    ...(listen !== undefined && { listen }),
    hosts: hostList.split(",").map(config),
    listenHosts: typeof listen === "string" ? listen.split(",").map(config) : undefined,
    secrets: secretsOf(user, passed),
  };
}

/** What the URL says of the layout. */
export function layoutOf(url: string): "record" | "shedlock" {
  return parsePostgresUrl(url).layout ?? "record";
}

function checkHost(host: string): string {
  if (host === "" || /^(\[[0-9a-fA-F:.%]+\]|[^\s:[\]]+)(:\d{1,5})?$/.test(host)) return host;
  throw invalid("a host of the PostgreSQL URL cannot be read: write host, host:port or [address]:port");
}

function parseQuery(query: string): { readonly own: PostgresLayouts; readonly passed: URLSearchParams } {
  const own = new Map<Own, string>();
  const passed = new URLSearchParams();
  for (const [name, value] of new URLSearchParams(query)) {
    const known = OWN.find((parameter) => parameter === name);
    if (known !== undefined) own.set(known, value);
    else if (PASSED.includes(name)) passed.append(name, value);
    else if (!IGNORED.includes(name)) throw unknownParameter(name);
  }
  return { own: layoutsOf(own), passed };
}

function unknownParameter(name: string): Error {
  // A name that is no word may be a part of something else that got here by mistake.
  const shown = /^[A-Za-z_]{1,30}$/.test(name) ? `"${name}"` : "of this name";
  return invalid(`a PostgreSQL URL has no parameter ${shown}; it knows ${[...OWN, ...PASSED].join(", ")}`);
}

function layoutsOf(own: ReadonlyMap<Own, string>): PostgresLayouts {
  const layout = own.get("layout");
  if (layout !== undefined && layout !== "record" && layout !== "shedlock")
    throw invalid('layout in the PostgreSQL URL is "record" (its own table) or "shedlock"');
  const quarantine = own.get("quarantine");
  if (quarantine !== undefined && quarantine !== "true" && quarantine !== "false")
    throw invalid("quarantine in the PostgreSQL URL is true or false");
  const [schema, table, listen] = (["schema", "table", "listen"] as const).map((name) => own.get(name));
  return {
    ...(schema !== undefined && { schema }),
    ...(table !== undefined && { table }),
    ...(layout !== undefined && { layout }),
    ...(quarantine !== undefined && { quarantine: quarantine === "true" }),
    ...(listen !== undefined && { listen: listen === "false" ? false : listen }),
  };
}

function secretsOf(user: string | undefined, passed: URLSearchParams): string[] {
  const written = user === undefined || !user.includes(":") ? "" : user.slice(user.indexOf(":") + 1);
  return [written, decoded(written), passed.get("password") ?? "", process.env["PGPASSWORD"] ?? ""].filter(
    (secret) => secret !== "",
  );
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalid("the PostgreSQL URL holds a broken %-sequence");
  }
}
