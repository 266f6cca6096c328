/** Event streams are few: who leaves, or only asks for the head, gives the place back. */
import { request } from "node:http";
import { expect, test } from "vitest";
import { Election, memoryBackend } from "../../src/index.js";
import { createSidecar } from "../../src/sidecar/index.js";
import { ask, until } from "../cli/http.js";

/** The most that any sidecar serves. */
const MOST_STREAMS = 64;

/** Opens a stream; resolves with its status, and how to leave. */
function open(url: string): Promise<{ status: number; leave: () => void }> {
  return new Promise((resolve, reject) => {
    const stream = request(url, { agent: false }, (response) => {
      response.on("error", () => {});
      response.resume();
      resolve({ status: response.statusCode ?? 0, leave: () => stream.destroy() });
    });
    stream.on("error", reject);
    stream.end();
  });
}

test("questions for the head of the stream, however many, take no place", async () => {
  await using election = new Election({ name: "a", backend: memoryBackend() });
  await using sidecar = await createSidecar({ elections: [election] });
  for (const path of ["/events", "/elections/a/events"])
    for (let i = 0; i <= MOST_STREAMS / 2; i++)
      expect((await ask(`${sidecar.url}${path}`, { method: "HEAD" })).status).toBe(200);
  const stream = await open(`${sidecar.url}/events`);
  expect(stream.status).toBe(200);
  stream.leave();
});

test("streams beyond the limit are refused, until one is left", async () => {
  await using election = new Election({ name: "a", backend: memoryBackend() });
  await using sidecar = await createSidecar({ elections: [election] });
  const streams: Awaited<ReturnType<typeof open>>[] = [];
  for (let i = 0; i <= MOST_STREAMS; i++) {
    const stream = await open(`${sidecar.url}/events`);
    if (stream.status !== 200) break;
    streams.push(stream);
  }
  expect(streams.length).toBeLessThanOrEqual(MOST_STREAMS);
  expect((await ask(`${sidecar.url}/events`)).status).toBe(503);
  expect((await ask(`${sidecar.url}/elections`)).status, "questions are answered").toBe(200);
  streams.pop()?.leave();
  await until("a place is free", async () => {
    const { status, leave } = await open(`${sidecar.url}/events`);
    leave();
    return status === 200;
  });
  for (const { leave } of streams) leave();
});
