/** An HTTP server that strangers may talk to: limits on headers, connections and time. */
import { createServer } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Clock } from "../seam/clock.js";
import { ConclaveError } from "../kit/errors.js";
import { Connections } from "./connections.js";
import { SECURITY_HEADERS } from "./security.js";

const REQUEST_TIMEOUT_MS = 5000;
const LARGEST_HEADER = 8 * 1024;
const MOST_HEADERS = 100;

export interface ServerOptions {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  readonly clock: Clock;
  /** Connections at once; see `connectionLimits`. */
  readonly mostConnections: number;
  /** The flag by which users choose the address. Default `--listen`. */
  readonly flag?: string;
  /** What it rejects with is answered by 500, without a word. */
  readonly handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
}

export interface OpenServer {
  /** Where it listens, e.g. `http://127.0.0.1:4040`. */
  readonly url: string;
  close(): Promise<void>;
}

export async function openServer(options: ServerOptions): Promise<OpenServer> {
  const { host, port, handle, flag = "--listen" } = options;
  const connections = new Connections(options.mostConnections, options.clock);
  const server = createServer(
    {
      maxHeaderSize: LARGEST_HEADER,
      requestTimeout: REQUEST_TIMEOUT_MS,
      headersTimeout: REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: 1000,
    },
    (request, response) => {
      if (connections.serving(request.socket, response))
        handle(request, response).catch(() => broken(response));
    },
  );
  server.maxHeadersCount = MOST_HEADERS;
  server.keepAliveTimeout = REQUEST_TIMEOUT_MS;
  server.on("connection", (socket) => connections.add(socket));
  server.on("clientError", (error, socket) => refuseUnread(connections, error, socket));
  await listen(server, port, host, flag);
  const address = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${address.port}`,
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      connections.close();
      await closed;
    },
  };
}

function listen(server: Server, port: number, host: string, flag: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException): void =>
      reject(
        new ConclaveError(
          "unsupported",
          `cannot listen on ${host}, port ${port}: ${error.code ?? error.message}; choose another with ${flag}`,
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
function refuseUnread(connections: Connections, error: NodeJS.ErrnoException, socket: Duplex): void {
  if (!(socket instanceof Socket) || error.code === "ECONNRESET") return void socket.destroy();
  const status =
    error.code === "HPE_HEADER_OVERFLOW"
      ? "431 Request Header Fields Too Large"
      : error.code === "ERR_HTTP_REQUEST_TIMEOUT"
        ? "408 Request Timeout"
        : "400 Bad Request";
  connections.refuse(socket, `HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
}

function broken(response: ServerResponse): void {
  if (response.headersSent) return void response.destroy();
  response.writeHead(500, { ...SECURITY_HEADERS, connection: "close" });
  response.end();
}
