/** A proxy in front of etcd that quotes our request in its refusal. */
import { once } from "node:events";
import { createServer } from "node:http2";
import type { IncomingHttpHeaders, ServerHttp2Session, ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { inspect } from "node:util";
import { afterEach, expect, it } from "vitest";
import { frame } from "../../src/backends/etcd/client/framing.js";
import { Writer } from "../../src/backends/etcd/client/protobuf.js";
import { etcdBackend } from "../../src/backends/etcd/index.js";
import { Election } from "../../src/index.js";

const PASSWORD = "correct horse battery";
const TOKEN = "simple-token-QkzYUpwlzTBcvXnh.1234";
const GRPC = { ":status": 200, "content-type": "application/grpc" };

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

/** Refuses with all it was sent; with `token`, only after it has authenticated us. */
async function echo(status: number, token: string | undefined): Promise<string> {
  const server = createServer();
  const sessions = new Set<ServerHttp2Session>();
  const answer = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, body: string): void => {
    if (token !== undefined && headers[":path"] === "/etcdserverpb.Auth/Authenticate") {
      stream.respond(GRPC, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
      return void stream.end(frame(new Writer().text(2, token).finish()));
    }
    // First what matters: only the beginning of it is told.
    const said = `not like this: ${String(headers["token"])} ${body}`;
    const trailers = { "grpc-status": String(status), "grpc-message": encodeURIComponent(said) };
    stream.respond({ ...GRPC, ...trailers }, { endStream: true });
  };
  server.on("session", (session) => sessions.add(session.on("error", () => {})));
  server.on("stream", (stream, headers) => {
    let body = "";
    stream.on("error", () => {});
    stream.on("data", (chunk: Buffer) => {
      body += chunk.toString("latin1").replace(/[^\x20-\x7e]/g, "");
      if (!stream.headersSent) answer(stream, headers, body);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closers.push(async () => {
    for (const session of sessions) session.destroy();
    server.close();
    await once(server, "close");
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

it.each([
  ["password", undefined],
  ["token", TOKEN],
])(
  "errors do not show the %s",
  async (_, token) => {
    for (const status of [2, 3, 4, 7, 12, 13, 14, 16]) {
      const endpoints = [await echo(status, token)];
      const backend = etcdBackend({ endpoints, username: "root", password: PASSWORD, env: {} });
      closers.push(() => backend[Symbol.asyncDispose]());
      const election = new Election({ name: "jobs", backend, ttlMs: 2000 });
      closers.push(() => election.close());
      for (const ask of [() => election.leader(), () => election.tryCampaign()]) {
        const error = await ask().then(
          () => expect.fail("it was refused"),
          (thrown: unknown) => thrown,
        );
        expect(error).toMatchObject({ name: "EtcdError" });
        expect(inspect(error, { depth: 10 })).not.toMatch(/correct horse|simple-token/);
      }
    }
  },
  60_000,
);
