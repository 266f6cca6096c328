/** Clients that keep a connection and do nothing with it. */
import { connect } from "node:net";
import type { Socket } from "node:net";
import { afterEach, expect, test } from "vitest";
import { Election, memoryBackend, systemClock } from "../../src/index.js";
import { connectionLimits } from "../../src/sidecar/descriptors.js";
import { createSidecar } from "../../src/sidecar/index.js";
import { openServer } from "../../src/sidecar/server.js";
import type { ServerOptions } from "../../src/sidecar/server.js";
import { openStream } from "../../src/sidecar/stream.js";
import { ask, until } from "../cli/http.js";

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

async function open(handle: ServerOptions["handle"], mostConnections = 100) {
  const server = await openServer({
    host: "127.0.0.1",
    port: 0,
    clock: systemClock,
    mostConnections,
    handle,
  });
  closers.push(() => server.close());
  return server;
}

interface Client {
  readonly socket: Socket;
  closed: boolean;
}

/** A client that sends this much and then neither reads nor closes. */
async function client(url: string, text = "", reads = false): Promise<Client> {
  const { port, hostname } = new URL(url);
  const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true });
  closers.push(() => socket.destroy());
  const made: Client = { socket, closed: false };
  socket.on("error", () => {});
  socket.on("close", () => (made.closed = true));
  await new Promise((resolve) => socket.once("connect", resolve));
  if (text !== "") socket.write(text);
  if (reads) socket.resume();
  return made;
}

/** Whether the other end is closed. A client that keeps its own side open learns it when it writes. */
function isDropped({ socket, closed }: Client): boolean {
  if (!closed) socket.write(" ");
  return closed;
}

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`;

test("who neither asks nor reads nor closes is dropped by time; who reads stays", async () => {
  const gone = new Set<string>();
  let unsent = 0;
  let told = 0;
  const { url } = await open(async (incoming, response) => {
    response.on("error", () => {});
    response.once("close", () => gone.add(incoming.url!));
    if (incoming.url === "/large") return void response.end(Buffer.alloc(32 * 1024 * 1024));
    const send = openStream(response);
    if (incoming.url === "/events") {
      const timer = setInterval(() => send("state", { told: ++told }), 100);
      response.once("close", () => clearInterval(timer));
      return;
    }
    // Until the kernel takes no more. Then nothing is added, so that only time can tell.
    const fill = (): void => {
      unsent = response.writableLength;
      if (unsent > 0 || response.destroyed) return;
      send("state", { text: "x".repeat(50_000) });
      setImmediate(fill);
    };
    fill();
  });
  const reading = await client(url, get("/events"), true);
  const silent = await client(url, "", true);
  const broken = await client(url, "GET\0garbage\r\n\r\n", true);
  let refusal = "";
  broken.socket.on("data", (chunk) => (refusal += chunk.toString()));
  await Promise.all([client(url, get("/large")), client(url, get("/fill"))]);
  await until("something waits for the one that does not read", () => unsent > 0);
  expect(unsent).toBeLessThan(256 * 1024);
  await Promise.all([
    until("the silent one is dropped", () => isDropped(silent)),
    until("the one that was refused is dropped", () => isDropped(broken)),
    until("the one that takes no answer is dropped", () => gone.has("/large")),
    until("the one that takes no events is dropped", () => gone.has("/fill")),
  ]);
  expect(refusal).toMatch(/^HTTP\/1.1 400/);
  const before = told;
  await until("the one that reads is still told", () => told > before);
  expect(gone.has("/events")).toBe(false);
  reading.socket.destroy();
});

test("at the limit those that ask come in and the longest idle go; those being served stay", async () => {
  const waiting: (() => void)[] = [];
  const { url } = await open(async (incoming, response) => {
    if (incoming.url === "/slow") await new Promise<void>((resolve) => waiting.push(resolve));
    response.end("here");
  }, 10);
  const slow = ask(`${url}/slow`);
  await until("it is being served", () => waiting.length === 1);
  const idle: Client[] = [];
  for (let i = 0; i < 40; i++) idle.push(await client(url, "", true));
  for (let i = 0; i < 5; i++) expect((await ask(url)).body).toBe("here");
  await until("most of the idle ones are gone", () => idle.filter(({ closed }) => closed).length >= 30);
  // The last ones to come are the last ones to go.
  expect(idle.slice(0, 30).every(({ closed }) => closed)).toBe(true);
  waiting[0]!();
  expect((await slow).body).toBe("here");
});

test("if all are being served, a new one is refused and the others are not disturbed", async () => {
  const waiting: (() => void)[] = [];
  const { url } = await open(async (_, response) => {
    await new Promise<void>((resolve) => waiting.push(resolve));
    response.end("here");
  }, 3);
  const served = [1, 2, 3].map(() => ask(url));
  await until("all are being served", () => waiting.length === 3);
  await expect(ask(url)).rejects.toThrow(/ECONNRESET|socket hang up/);
  for (const done of waiting) done();
  for (const answer of await Promise.all(served)) expect(answer.body).toBe("here");
});

test("thousands of requests in a row are not served: the connection is dropped", async () => {
  let served = 0;
  const { url } = await open(async (_, response) => {
    served++;
    response.end("here");
  });
  const flood = await client(url, get("/").repeat(20_000));
  await until("it is dropped", () => isDropped(flood));
  expect(served).toBeLessThan(1_000);
  served = 0;
  // A few are nobody's attack.
  const few = await client(url, get("/").repeat(8));
  await until("all are served", () => served === 8);
  expect(few.closed).toBe(false);
});

test("closing does not wait for anyone", async () => {
  const election = new Election({ name: "e", backend: memoryBackend() });
  const sidecar = await createSidecar({ elections: [election] });
  const kinds = [
    "",
    "GET\0\r\n\r\n",
    "GET /elections HTTP/1.1\r\n",
    "GET /events HTTP/1.1\r\nhost: localhost\r\n\r\n",
  ];
  await Promise.all(kinds.map((text) => client(sidecar.url, text)));
  await sidecar.close();
  await election.close();
});

test("connections leave descriptors for the rest of the process", () => {
  const all = connectionLimits(0);
  expect(all.connections).toBeLessThanOrEqual(2048);
  expect(all.streams).toBeLessThanOrEqual(all.connections / 2);
  expect(connectionLimits(10_000_000)).toEqual({ connections: 8, streams: 4 });
});
