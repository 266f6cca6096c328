/**
 * Elections over HTTP, for programs in any language and for load balancers.
 *
 * Answers say how long they may be relied on (`validForMs`, counted from when
 * the question was sent). A sidecar that cannot know answers 503: it never says
 * what was true before.
 */
import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Clock } from "../core/clock.js";
import { systemClock } from "../core/clock.js";
import type { Election } from "../core/election.js";
import { ConclaveError, invalid } from "../core/errors.js";
import { route } from "./routes.js";
import type { Context } from "./routes.js";
import { hostsOf, isLoopback, SECURITY_HEADERS } from "./security.js";
import { ElectionView } from "./view.js";

export type { WireElection, WireError, WireEvent, WireLeader } from "./protocol.js";

export interface SidecarOptions {
  /** The elections it speaks of. They stay yours: run and close them yourself. */
  readonly elections: readonly Election[];
  /** Address to listen on. Default `127.0.0.1`. Beyond loopback a token is required. */
  readonly host?: string | undefined;
  /** Default 0: any free port. */
  readonly port?: number | undefined;
  /** Shared secret for routes that change something, and for all routes beyond loopback. At least 16 characters. */
  readonly token?: string | undefined;
  /** Further host names clients call it by. */
  readonly allowedHosts?: readonly string[] | undefined;
  /** What `GET /metrics` answers; see `conclave/metrics`. */
  readonly metrics?: (() => Promise<{ type: string; text: string }>) | undefined;
  /** Further files by exact path (the live page). */
  readonly assets?: ReadonlyMap<string, { readonly type: string; readonly body: Buffer }> | undefined;
  readonly clock?: Clock | undefined;
}

export interface Sidecar extends AsyncDisposable {
  /** Where it listens, e.g. `http://127.0.0.1:4040`. */
  readonly url: string;
  close(): Promise<void>;
}

const SHORTEST_TOKEN = 16;
const REQUEST_TIMEOUT_MS = 5000;
const MOST_CONNECTIONS = 2048;
const MOST_STREAMS = 64;
const LARGEST_HEADER = 8 * 1024;
const MOST_HEADERS = 100;

export async function createSidecar(options: SidecarOptions): Promise<Sidecar> {
  const clock = options.clock ?? systemClock;
  const host = options.host ?? "127.0.0.1";
  check(options, host);
  const views = new Map(
    options.elections.map((election) => [election.name, new ElectionView(election, clock)]),
  );
  const context: Context = {
    clock,
    views,
    access: {
      exposed: !isLoopback(host),
      token: options.token,
      hosts: hostsOf(host, options.allowedHosts ?? []),
    },
    metrics: options.metrics,
    streams: { most: MOST_STREAMS, open: 0 },
    assets: options.assets ?? new Map(),
  };
  const server = createServer(
    {
      maxHeaderSize: LARGEST_HEADER,
      requestTimeout: REQUEST_TIMEOUT_MS,
      headersTimeout: REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: 1000,
    },
    (request, response) => {
      route(context, request, response).catch(() => broken(response));
    },
  );
  server.maxHeadersCount = MOST_HEADERS;
  server.maxConnections = MOST_CONNECTIONS;
  server.keepAliveTimeout = REQUEST_TIMEOUT_MS;
  server.on("clientError", refuseUnread);
  const close = async (): Promise<void> => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeAllConnections();
    await Promise.all([closed, ...[...views.values()].map((view) => view.close())]);
  };
  try {
    await listen(server, options.port ?? 0, host);
  } catch (error) {
    await close();
    throw error;
  }
  const { port } = server.address() as AddressInfo;
  const url = `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
  return { url, close, [Symbol.asyncDispose]: close };
}

function check({ elections, token, port }: SidecarOptions, host: string): void {
  if (elections.length === 0) throw invalid("a sidecar speaks of at least one election; pass one");
  const names = elections.map(({ name }) => name);
  if (new Set(names).size !== names.length)
    throw invalid("a sidecar speaks of an election by its name; two have the same");
  if (token !== undefined && token.length < SHORTEST_TOKEN)
    throw invalid(`the token has ${token.length} characters; use at least ${SHORTEST_TOKEN}`);
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token))
    throw invalid(
      "the token holds characters that no HTTP header carries; use printable ASCII without spaces",
    );
  if (!isLoopback(host) && token === undefined)
    throw invalid(`listening on ${host}, beyond this machine, needs a token`);
  if (port !== undefined && (!Number.isInteger(port) || port < 0 || port > 65_535))
    throw invalid(`port must be a whole number from 0 to 65535, got ${port}`);
}

function listen(server: ReturnType<typeof createServer>, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException): void =>
      reject(
        new ConclaveError(
          "unsupported",
          `cannot listen on ${host}, port ${port}: ${error.code ?? error.message}; choose another with --listen`,
          { cause: error },
        ),
      );
    server.once("error", failed);
    server.listen(port, host, () => {
      server.off("error", failed);
      server.on("error", () => {}); // a single bad accept must not end the host process
      resolve();
    });
  });
}

/** What could not even be read as HTTP. */
function refuseUnread(error: NodeJS.ErrnoException, socket: import("node:stream").Duplex): void {
  if (!socket.writable || error.code === "ECONNRESET") return void socket.destroy();
  const status =
    error.code === "HPE_HEADER_OVERFLOW"
      ? "431 Request Header Fields Too Large"
      : error.code === "ERR_HTTP_REQUEST_TIMEOUT"
        ? "408 Request Timeout"
        : "400 Bad Request";
  socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
}

function broken(response: ServerResponse<IncomingMessage>): void {
  if (response.headersSent) return void response.destroy();
  response.writeHead(500, { ...SECURITY_HEADERS, connection: "close" });
  response.end();
}
