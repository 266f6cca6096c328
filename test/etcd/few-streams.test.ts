/** A server that allows few streams at once keeps them for requests. */
import { once } from "node:events";
import { connect, createServer } from "node:http2";
import { connect as connectTcp, type AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { Connection } from "../../src/backends/etcd/client/connection.js";
import { frame } from "../../src/backends/etcd/client/framing.js";
import { systemClock } from "../../src/kit/clock.js";
import { StopSource } from "../../src/kit/stop.js";

/** Streams the server has seen after a watch and two calls with a pause between them. */
async function streamsSeen(maxConcurrentStreams: number): Promise<number> {
  let seen = 0;
  const server = createServer({ settings: { maxConcurrentStreams } });
  server.on("stream", (stream) => {
    seen++;
    stream.on("error", () => {});
    stream.respond({ ":status": 200 }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    stream.once("data", () => stream.end(frame(new Uint8Array(1))));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const socket = connectTcp(port, "127.0.0.1");
  const session = connect(`http://127.0.0.1:${port}`, { createConnection: () => socket });
  await once(session, "remoteSettings");
  const connection = new Connection(session, socket, "test", systemClock, () => {});
  connection.stream("/watch", undefined, { message: () => {}, ended: () => {} });
  const body = new Uint8Array(1);
  const request = { path: "/call", body, limitMs: 5_000, signal: new StopSource(), again: true };
  for (let i = 0; i < 2; i++) {
    await connection.unary(request, undefined);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  connection.end("done");
  server.close();
  await once(server, "close");
  return seen;
}

test("no stream is opened ahead where few are allowed", async () => {
  expect(await streamsSeen(2)).toBe(3);
});
