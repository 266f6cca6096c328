/** A server that is no Kubernetes: it answers what the test says. */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { createServer } from "node:http";
import type { Socket } from "node:net";
import { afterEach } from "vitest";
import type { Access } from "../../../src/backends/kubernetes/access.js";
import { ApiClient } from "../../../src/backends/kubernetes/http.js";
import { Leases } from "../../../src/backends/kubernetes/leases.js";
import { systemClock } from "../../../src/kit/clock.js";

type Handler = (request: IncomingMessage, response: ServerResponse, body: string) => void;

const closers: (() => Promise<void> | void)[] = [];

/** Done after the test, last first. */
export function after(close: () => Promise<void> | void): void {
  closers.push(close);
}

/** Once in every file that uses {@link fake}. */
export function closeAfterEach(): void {
  afterEach(async () => {
    for (const close of closers.splice(0).toReversed()) await close();
  });
}

export interface Fake {
  readonly access: Access;
  readonly client: ApiClient;
  readonly leases: Leases;
  readonly sockets: ReadonlySet<Socket>;
  readonly requests: string[];
}

/** An API server that does what `handler` says, and a client of it. */
export async function fake(handler: Handler, access: Partial<Access> = {}): Promise<Fake> {
  const requests: string[] = [];
  const sockets = new Set<Socket>();
  const server: Server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    let body = "";
    request.setEncoding("utf8");
    request.on("data", (chunk: string) => (body += chunk));
    request.on("end", () => handler(request, response, body));
  });
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const full: Access = {
    origin: "test",
    server: new URL(`http://127.0.0.1:${port}`),
    namespace: undefined,
    credentials: async () => ({ authorization: "Bearer t" }),
    refresh: async () => {},
    ...access,
  };
  const client = new ApiClient(full, systemClock);
  after(() => {
    client.close();
    for (const socket of sockets) socket.destroy();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  });
  return { access: full, client, leases: new Leases(client, "ns"), sockets, requests };
}

export const never = new AbortController().signal;
export const lease = (version: number, spec: object = {}): string =>
  JSON.stringify({ metadata: { name: "jobs", uid: "u", resourceVersion: String(version) }, spec });
export const held = {
  holderIdentity: "other",
  leaseDurationSeconds: 15,
  acquireTime: "2026-01-01T00:00:00.000000Z",
  renewTime: "2026-01-01T00:00:00.000000Z",
  leaseTransitions: 0,
};

export function answer(
  response: ServerResponse,
  status: number,
  body = "{}",
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(body);
}
