import { request as httpRequest } from "node:http";
import type { IncomingHttpHeaders, RequestOptions } from "node:http";
import { connect } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { Election, memoryBackend } from "../../src/index.js";
import type { Backend } from "../../src/index.js";
import { ControlRecord } from "../../src/control/record.js";
import { answerTo, askLeader } from "../../src/control/requests.js";
import { systemClock } from "../../src/kit/clock.js";
import { createSidecar } from "../../src/sidecar/index.js";
import type { SidecarOptions, WireElection } from "../../src/sidecar/index.js";

const TOKEN = "0123456789abcdef0123";
const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

async function start(options: Partial<SidecarOptions> & { backend?: Backend } = {}) {
  const election = new Election({
    name: "jobs/nightly",
    backend: options.backend ?? memoryBackend(),
    id: "us",
    ttlMs: 1500,
  });
  const sidecar = await createSidecar({ elections: [election], ...options });
  closers.push(
    () => election.close(),
    () => sidecar.close(),
  );
  return { election, sidecar, path: "/elections/jobs%2Fnightly" };
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Without the checks of `fetch`: hostile headers are the point. */
function ask(url: string, path: string, options: RequestOptions & { body?: string } = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(new URL(path, url), { agent: false, ...options }, (response) => {
      let body = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => (body += chunk));
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body }),
      );
    });
    request.on("error", reject);
    request.end(options.body);
  });
}

async function until(what: () => boolean | Promise<boolean>): Promise<void> {
  const limit = performance.now() + 15_000;
  while (!(await what())) {
    if (performance.now() > limit) throw new Error("waited 15 s in vain");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

describe("answers", () => {
  test("who leads, whether we do, and for how long that holds", async () => {
    const { election, sidecar, path } = await start();
    await until(async () => (await ask(sidecar.url, "/readyz")).status === 200);
    expect((await ask(sidecar.url, `${path}/leading`)).status).toBe(503);
    expect((await ask(sidecar.url, "/")).status).toBe(503);
    const term = await election.campaign();
    const { status, body } = await ask(sidecar.url, path);
    const state = JSON.parse(body) as WireElection;
    expect(status).toBe(200);
    expect(state).toMatchObject({
      election: "jobs/nightly",
      candidate: election.candidate,
      leading: true,
      jeopardy: false,
    });
    expect(state.leader).toMatchObject({ candidate: election.candidate, token: term.token.toString() });
    expect(state.validForMs).toBeGreaterThan(0);
    expect(state.validForMs).toBeLessThanOrEqual(1500);
    expect((await ask(sidecar.url, `${path}/leading`)).status).toBe(200);
    expect(JSON.parse((await ask(sidecar.url, "/")).body)).toEqual({ name: election.candidate });
    expect((await ask(sidecar.url, "/healthz")).status).toBe(200);
    expect(JSON.parse((await ask(sidecar.url, "/elections")).body)).toEqual({ elections: ["jobs/nightly"] });
  });

  test("another leader is seen, and its end", async () => {
    const backend = memoryBackend();
    const { sidecar, path } = await start({ backend });
    await using other = new Election({ name: "jobs/nightly", backend, id: "other", ttlMs: 1500 });
    const term = await other.campaign();
    const leader = async () => (JSON.parse((await ask(sidecar.url, path)).body) as WireElection).leader;
    await until(async () => (await leader())?.candidate === other.candidate);
    expect((await ask(sidecar.url, `${path}/leading`)).status).toBe(503);
    await term.resign();
    await until(async () => (await leader()) === null);
  });

  test("when the store is gone, an answer does not outlive its validity", async () => {
    const inner = memoryBackend();
    const away = { now: false };
    const fail = () => Promise.reject(new Error("store away"));
    const backend: Backend = {
      name: "flaky",
      guarantees: inner.guarantees,
      records: inner.records,
      campaign: (...args) => (away.now ? fail() : inner.campaign(...args)),
      async *observe(election, options) {
        if (away.now) await fail();
        for await (const leader of inner.observe(election, options)) {
          if (away.now) await fail();
          yield leader;
        }
      },
      [Symbol.asyncDispose]: async () => {},
    };
    const { sidecar, path } = await start({ backend });
    await using other = new Election({ name: "jobs/nightly", backend: inner, id: "other", ttlMs: 1500 });
    await other.campaign();
    await until(
      async () => JSON.parse((await ask(sidecar.url, path)).body).leader?.candidate === other.candidate,
    );
    away.now = true;
    const asked = performance.now();
    const { validForMs } = JSON.parse((await ask(sidecar.url, path)).body) as WireElection;
    await until(async () => (await ask(sidecar.url, path)).status === 503);
    // It may have been confirmed once more by a question already under way; never later than one ttl after.
    expect(performance.now() - asked).toBeGreaterThanOrEqual(validForMs - 5);
    expect((await ask(sidecar.url, "/readyz")).status).toBe(503);
  });

  test("events: state first, then what happens", async () => {
    const { election, sidecar, path } = await start();
    const events: string[] = [];
    const request = httpRequest(new URL(`${path}/events`, sidecar.url), { agent: false });
    request.on("response", (response) => {
      expect(response.headers["content-type"]).toMatch(/^text\/event-stream/);
      response.setEncoding("utf8");
      response.on("error", () => {});
      response.on("data", (chunk: string) =>
        events.push(...[...chunk.matchAll(/^event: (.+)$/gm)].map((m) => m[1]!)),
      );
    });
    request.on("error", () => {});
    request.end();
    await until(() => events.length > 0);
    expect(events[0]).toBe("state");
    const term = await election.campaign();
    await until(() => events.includes("elected"));
    await term.resign();
    await until(() => events.includes("ended"));
    request.destroy();
  });

  test("resign needs the token, and hands over", async () => {
    const { election, sidecar, path } = await start({ token: TOKEN });
    const resign = (headers: Record<string, string> = {}) =>
      ask(sidecar.url, `${path}/resign`, { method: "POST", headers });
    const authorization = `Bearer ${TOKEN}`;
    expect((await resign({ authorization })).status).toBe(409);
    await election.campaign();
    expect((await resign()).status).toBe(401);
    expect((await resign({ authorization: "Bearer wrong" })).status).toBe(401);
    expect((await resign({ authorization, origin: "http://evil.test" })).status).toBe(403);
    expect(election.leading).toBe(true);
    expect((await resign({ authorization })).status).toBe(200);
    expect(election.leading).toBe(false);
  });

  test("transfer is refused while the election is paused", async () => {
    const backend = memoryBackend();
    const election = new Election({ name: "jobs", backend, id: "us", controls: true });
    const sidecar = await createSidecar({ elections: [election], token: TOKEN });
    closers.push(
      () => election.close(),
      () => sidecar.close(),
    );
    const term = await election.campaign();
    const pause = { since: 1, by: "ops" };
    const { records } = backend;
    const { signal } = new AbortController();
    const record = new ControlRecord({
      ...{ records, election: "jobs", clock: systemClock, attemptMs: 1_000 },
    });
    await record.change((now) => ({ ...now, pause }), { signal });
    // Once the leader has answered something it has read the pause, too.
    const request = await askLeader(record, { kind: "transfer", to: "us" }, term, { signal, by: "ops" });
    await answerTo(record, request.id, { signal, limitMs: 5_000 });
    const { status, body } = await ask(sidecar.url, "/elections/jobs/transfer?to=heir", {
      method: "POST",
      headers: { authorization: `Bearer ${TOKEN}` },
    });
    expect([status, JSON.parse(body)]).toEqual([
      409,
      { error: '"jobs" is paused: `conclave unpause jobs` first' },
    ]);
    expect(term.held).toBe(true);
  });

  test("transfer names who shall lead next, and says who was seen to", async () => {
    const { election, sidecar, path } = await start({ token: TOKEN });
    const headers = { authorization: `Bearer ${TOKEN}` };
    const transfer = (query: string, method = "POST") =>
      ask(sidecar.url, `${path}/transfer${query}`, { method, headers });
    expect((await transfer("?to=heir")).status).toBe(409);
    await election.campaign();
    expect((await transfer("?to=heir", "GET")).status).toBe(405);
    expect((await transfer("")).status).toBe(400);
    expect((await transfer(`?to=${election.candidate}`)).status).toBe(400);
    expect(election.leading).toBe(true);
    const { name, backend } = election;
    await using heir = new Election({ name, backend, id: "heir", ttlMs: 3_000, retryMs: 50 });
    const leads = heir.campaign();
    const answer = await transfer("?to=heir");
    expect([answer.status, JSON.parse(answer.body)]).toEqual([200, { result: "taken" }]);
    expect((await leads).held).toBe(true);
  });

  test("without a token nothing can be changed", async () => {
    const { election, sidecar, path } = await start();
    await election.campaign();
    expect((await ask(sidecar.url, `${path}/resign`, { method: "POST" })).status).toBe(403);
    expect(election.leading).toBe(true);
  });
});

describe("hostile requests", () => {
  test("hosts, origins, methods, paths, bodies, headers", async () => {
    const { sidecar, path } = await start({ token: TOKEN });
    const status = async (p: string, options: RequestOptions & { body?: string } = {}) =>
      (await ask(sidecar.url, p, options)).status;
    expect(await status(path, { headers: { host: "evil.test" } })).toBe(403);
    expect(await status(path, { headers: { host: "127.0.0.1.evil.test" } })).toBe(403);
    expect(await status(path, { headers: { origin: "http://evil.test" } })).toBe(403);
    expect(await status(path, { headers: { origin: "null" } })).toBe(403);
    expect(await status(`${path}/resign`)).toBe(405);
    expect(await status(path, { method: "DELETE", headers: { authorization: `Bearer ${TOKEN}` } })).toBe(405);
    expect(await status("/nothing")).toBe(404);
    expect(await status("/elections/__proto__")).toBe(404);
    expect(await status("/elections/%zz")).toBe(404);
    expect(await status("/elections/..%2f..%2fetc")).toBe(404);
    const authorization = `Bearer ${TOKEN}`;
    expect(
      await status(`${path}/resign`, {
        method: "POST",
        headers: { authorization },
        body: "x".repeat(1_000_000),
      }),
    ).toBe(413);
    expect(await status(path, { headers: { "x-long": "x".repeat(20_000) } })).toBe(431);
    const csp = (await ask(sidecar.url, path)).headers["content-security-policy"];
    expect(csp).toContain("default-src 'none'");
  });

  test("what is not HTTP is refused, and the server lives on", async () => {
    const { sidecar } = await start();
    const { port } = new URL(sidecar.url);
    const answer = await new Promise<string>((resolve, reject) => {
      const socket = connect(Number(port), "127.0.0.1", () => socket.write("GET\0garbage\r\n\r\n"));
      let text = "";
      socket.on("data", (chunk) => (text += chunk.toString()));
      socket.on("end", () => resolve(text));
      socket.on("error", reject);
    });
    expect(answer).toMatch(/^HTTP\/1.1 400/);
    expect((await ask(sidecar.url, "/healthz")).status).toBe(200);
  });

  test("a client that sends its request a byte at a time is dropped", async () => {
    const { sidecar } = await start();
    const { port } = new URL(sidecar.url);
    const started = performance.now();
    await new Promise<void>((resolve) => {
      const socket = connect(Number(port), "127.0.0.1", () => socket.write("GET /healthz HTTP/1.1\r\n"));
      socket.resume();
      socket.on("close", () => resolve());
      socket.on("error", () => resolve());
    });
    expect(performance.now() - started).toBeLessThan(20_000);
  });

  test("a thousand questions at once are all answered", async () => {
    const { election, sidecar, path } = await start();
    await election.campaign();
    const answers = await Promise.all(Array.from({ length: 1000 }, () => ask(sidecar.url, path)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1000);
  });

  test("beyond loopback all but the probes need the token", async () => {
    await expect(start({ host: "0.0.0.0" })).rejects.toThrow(/needs a token/);
    const { sidecar, path } = await start({ host: "0.0.0.0", token: TOKEN });
    const url = sidecar.url.replace("0.0.0.0", "127.0.0.1");
    expect((await ask(url, path)).status).toBe(401);
    expect((await ask(url, "/healthz")).status).toBe(200);
    expect((await ask(url, "/elections", { headers: { authorization: `Bearer ${TOKEN}` } })).status).toBe(
      200,
    );
  });
});

test("bad options are refused with a reason", async () => {
  const election = new Election({ name: "e", backend: memoryBackend() });
  await expect(createSidecar({ elections: [] })).rejects.toThrow(/at least one/);
  await expect(createSidecar({ elections: [election], token: "short" })).rejects.toThrow(/at least 16/);
  await expect(createSidecar({ elections: [election], port: 70_000 })).rejects.toThrow(/0 to 65535/);
  await expect(createSidecar({ elections: [election, election] })).rejects.toThrow(/same/);
});
