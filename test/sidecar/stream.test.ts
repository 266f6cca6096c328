import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { Election, memoryBackend } from "../../src/index.js";
import { createSidecar } from "../../src/sidecar/index.js";
import type { WireEvent } from "../../src/sidecar/index.js";
import { onGone, openStream } from "../../src/sidecar/stream.js";
import { ask, until } from "../cli/http.js";

const TOKEN = "0123456789abcdef0123";

test("one stream tells of all elections, each event by its name", async () => {
  const backend = memoryBackend();
  await using a = new Election({ name: "a", backend, ttlMs: 1500 });
  await using b = new Election({ name: "b", backend, ttlMs: 1500 });
  await using sidecar = await createSidecar({ elections: [a, b] });
  let text = "";
  const stream = request(`${sidecar.url}/events`, { agent: false }, (response) => {
    response.setEncoding("utf8");
    response.on("error", () => {});
    response.on("data", (chunk: string) => (text += chunk));
  });
  stream.on("error", () => {});
  stream.end();
  const events = (): WireEvent[] =>
    [...text.matchAll(/^data: (.+)\n\n/gm)].map((match) => JSON.parse(match[1]!) as WireEvent);
  const states = (): string[] =>
    events().flatMap((event) => (event.event === "state" ? [event.election] : []));
  await until("both states", () => states().includes("a") && states().includes("b"));
  const term = await b.campaign();
  await until("the election of b", () =>
    events().some((event) => event.event === "elected" && event.election === "b"),
  );
  expect(events().some((event) => event.event === "elected" && event.election === "a")).toBe(false);
  await term.resign();
  stream.destroy();
});

test("beyond loopback a browser gets the page without a token, and nothing else", async () => {
  await using election = new Election({ name: "a", backend: memoryBackend() });
  const assets = new Map([["/ui", { type: "text/html", body: Buffer.from("page") }]]);
  await using sidecar = await createSidecar({ elections: [election], host: "0.0.0.0", token: TOKEN, assets });
  const url = sidecar.url.replace("0.0.0.0", "127.0.0.1");
  expect(await ask(`${url}/ui`)).toMatchObject({ status: 200, body: "page" });
  expect((await ask(`${url}/ui`, { headers: { host: "evil.test" } })).status).toBe(403);
  expect((await ask(`${url}/ui`, { method: "POST" })).status).toBe(401);
  expect((await ask(`${url}/events`)).status).toBe(401);
  expect((await ask(`${url}/elections`)).status).toBe(401);
});

test("a reader that does not read is dropped, not buffered for", async () => {
  let gone = false;
  let sent = 0;
  const server = createServer((_, response) => {
    const send = openStream(response);
    const timer = setInterval(() => {
      sent++;
      send("state", { text: "x".repeat(200_000) });
    }, 2);
    onGone(response, () => {
      clearInterval(timer);
      gone = true;
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  socket.on("error", () => {});
  socket.write("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n");
  socket.pause();
  await until("it is dropped", () => gone);
  // What the kernel takes is not ours to limit; beyond it, little is kept.
  expect(sent * 200_000).toBeLessThan(64 * 1024 * 1024);
  socket.destroy();
  await new Promise<void>((resolve) => server.close(() => resolve()));
});
