import type { Clock } from "../../seam/clock.js";
import { systemClock } from "../../kit/clock.js";
import { invalid } from "../../kit/errors.js";
import type { PostgresClient, Session, Subscribe } from "./client.js";
import { OwnConnections } from "./connections.js";
import { Dialer } from "./dial.js";
import { handedSession, handedSubscribe, subscribe } from "./handed.js";
import { DEFAULT_TABLES, type TableName, tableName } from "./table.js";
import { type ParsedUrl, parsePostgresUrl } from "./url.js";

/** How leaderships are kept. `record`: a table of Conclave's own. `shedlock`: ShedLock's, beside its Java users. */
type PostgresLayout = "record" | "shedlock";

/** Where PostgreSQL is, and which table. Give a URL or a client. */
export interface PostgresOptions {
  /** `postgres://user@host:5432,host2:5432/database?sslmode=verify-full`: connections of its own, by the package pg. */
  readonly url?: string | undefined;
  /** A client to use instead; it is not closed with the backend. A `Pool` of pg is best. */
  readonly client?: PostgresClient | undefined;
  /**
   * How followers are woken. `false`: they poll. A URL: a connection that does
   * not go through a pooler. Default: by the client, or a connection of its own.
   */
  readonly listen?: false | string | undefined;
  /** Default: where the connection's `search_path` puts it. */
  readonly schema?: string | undefined;
  /** Default `conclave_record`; with layout `shedlock`, `shedlock`. */
  readonly table?: string | undefined;
  /** `false`: after a failover leaderships are granted at once, even if the old primary may have granted them too. */
  readonly quarantine?: boolean | undefined;
  /** Most connections to open for statements, with a URL. Default 2; another one listens. */
  readonly connections?: number | undefined;
  /** Longest that connecting to one host may take, with a URL. Default 3 s. */
  readonly dialTimeoutMs?: number | undefined;
  /** After this the server gives a statement up, with a URL. Default 2.5 s. */
  readonly statementTimeoutMs?: number | undefined;
  /** Told once of what works less well than it could. Default: a warning of the process. */
  readonly warn?: ((message: string) => void) | undefined;
  /** Time and chance. For tests. */
  readonly clock?: Clock | undefined;
}

/** What the options mean. */
export interface Resolved {
  readonly clock: Clock;
  readonly layout: PostgresLayout;
  readonly table: TableName;
  readonly quarantine: boolean;
  readonly session: Session;
  readonly subscribe: Subscribe | undefined;
  readonly secrets: readonly string[];
  readonly warn: (message: string) => void;
}

const DIAL_TIMEOUT_MS = 3_000;
const STATEMENT_TIMEOUT_MS = 2_500;
const CONNECTIONS = 2;

export function resolve(options: PostgresOptions, opened: PostgresLayout): Resolved {
  if ((options.url === undefined) === (options.client === undefined))
    throw invalid("a PostgreSQL backend takes a url or a client, one of them");
  const url = options.url === undefined ? undefined : parsePostgresUrl(options.url);
  const layout = url?.layout ?? opened;
  return {
    clock: options.clock ?? systemClock,
    layout,
    table: tableName(options.schema ?? url?.schema, options.table ?? url?.table ?? DEFAULT_TABLES[layout]),
    quarantine: options.quarantine ?? url?.quarantine ?? true,
    secrets: url?.secrets ?? [],
    warn: options.warn ?? ((message) => process.emitWarning(message, { code: "CONCLAVE_POSTGRES" })),
    ...(url === undefined ? handed(options) : own(options, url)),
  };
}

function own(options: PostgresOptions, url: ParsedUrl): Pick<Resolved, "session" | "subscribe"> {
  const clock = options.clock ?? systemClock;
  const { connections = CONNECTIONS } = options;
  if (!Number.isInteger(connections) || connections < 1 || connections > 100)
    throw invalid(`connections is ${String(connections)}; it must be a whole number from 1 to 100`);
  const dialer = dialerOf(options, url.hosts, url.secrets);
  const listen = options.listen ?? (url.listenHosts === undefined ? url.listen : undefined);
  return {
    session: new OwnConnections(clock, dialer, connections),
    subscribe:
      listen === undefined
        ? by(url.listenHosts === undefined ? dialer : dialerOf(options, url.listenHosts, url.secrets))
        : named(options, listen),
  };
}

function handed(options: PostgresOptions): Pick<Resolved, "session" | "subscribe"> {
  const client = options.client!;
  return {
    session: handedSession(client),
    subscribe: options.listen === undefined ? handedSubscribe(client) : named(options, options.listen),
  };
}

function named(options: PostgresOptions, listen: false | string): Subscribe | undefined {
  if (listen === false) return undefined;
  const { hosts, secrets } = parsePostgresUrl(listen);
  return by(dialerOf(options, hosts, secrets));
}

function by(dialer: Dialer): Subscribe {
  return (channel, notified, signal) =>
    subscribe((limited) => dialer.dial(limited), channel, notified, signal);
}

function dialerOf(options: PostgresOptions, hosts: ParsedUrl["hosts"], secrets: readonly string[]): Dialer {
  return new Dialer({
    clock: options.clock ?? systemClock,
    hosts,
    secrets,
    dialTimeoutMs: duration("dialTimeoutMs", options.dialTimeoutMs ?? DIAL_TIMEOUT_MS),
    statementTimeoutMs: duration("statementTimeoutMs", options.statementTimeoutMs ?? STATEMENT_TIMEOUT_MS),
  });
}

function duration(name: string, ms: number): number {
  if (ms >= 1 && ms <= 600_000) return ms;
  throw invalid(`${name} is ${String(ms)}; it must lie between 1 and 600000`);
}
