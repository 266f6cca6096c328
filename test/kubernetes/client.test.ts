/** The client against a server that answers what the test says. No Kubernetes. */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { createServer } from "node:http";
import type { Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import type { Access } from "../../src/backends/kubernetes/access.js";
import { ApiClient } from "../../src/backends/kubernetes/http.js";
import { Leases } from "../../src/backends/kubernetes/leases.js";
import { LeaseStore } from "../../src/backends/kubernetes/store.js";
import { TextStore } from "../../src/backends/kubernetes/texts.js";
import { systemClock } from "../../src/core/clock.js";

type Handler = (request: IncomingMessage, response: ServerResponse, body: string) => void;

const closers: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

interface Fake {
  readonly access: Access;
  readonly client: ApiClient;
  readonly leases: Leases;
  readonly sockets: ReadonlySet<Socket>;
  readonly requests: string[];
}

async function fake(handler: Handler, access: Partial<Access> = {}): Promise<Fake> {
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
  closers.push(() => {
    client.close();
    for (const socket of sockets) socket.destroy();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  });
  return { access: full, client, leases: new Leases(client, "ns"), sockets, requests };
}

const never = new AbortController().signal;
const lease = (version: number, spec: object = {}): string =>
  JSON.stringify({ metadata: { name: "jobs", uid: "u", resourceVersion: String(version) }, spec });
const held = {
  holderIdentity: "other",
  leaseDurationSeconds: 15,
  acquireTime: "2026-01-01T00:00:00.000000Z",
  renewTime: "2026-01-01T00:00:00.000000Z",
  leaseTransitions: 0,
};

function answer(
  response: ServerResponse,
  status: number,
  body = "{}",
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(body);
}

describe("answers", () => {
  it.each([
    [401, "forbidden", false],
    [403, "forbidden", false],
    [400, "invalid", false],
    [422, "invalid", false],
    [429, "unavailable", true],
    [500, "unavailable", true],
    [503, "unavailable", true],
    [302, "unavailable", true],
  ])("%i is %s (retriable: %s)", async (status, code, retriable) => {
    const { leases } = await fake((_, response) =>
      answer(response, status, JSON.stringify({ reason: "R", message: "because\u0000so" })),
    );
    await expect(leases.get("jobs", { signal: never })).rejects.toMatchObject({
      code,
      retriable,
      message: expect.stringContaining("because so"),
    });
  });

  it("404 on a read is nothing there; 404 on create is a namespace that is not", async () => {
    const { leases } = await fake((_, response) => answer(response, 404));
    expect(await leases.get("jobs", { signal: never })).toBeNull();
    await expect(leases.create("jobs", {}, { signal: never })).rejects.toMatchObject({
      code: "invalid",
      message: expect.stringContaining("create the namespace"),
    });
  });

  it("409 is not current, for create only if the object is there", async () => {
    const { leases } = await fake((_, response, body) =>
      answer(
        response,
        409,
        JSON.stringify({ reason: body.includes("there") ? "AlreadyExists" : "Conflict" }),
      ),
    );
    expect(await leases.update("jobs", {}, { signal: never })).toBeNull();
    expect(await leases.create("jobs", { there: 1 }, { signal: never })).toBeNull();
    await expect(leases.create("jobs", {}, { signal: never })).rejects.toMatchObject({ code: "unavailable" });
  });

  it.each(["not json", "[]", '{"metadata":{}}', ""])("200 with %j is an error, not a Lease", async (body) => {
    const { leases } = await fake((_, response) => answer(response, 200, body));
    await expect(leases.get("jobs", { signal: never })).rejects.toMatchObject({ name: "ConclaveError" });
  });

  it("an answer without end is cut off", async () => {
    const { leases } = await fake((_, response) => {
      response.writeHead(200);
      const more = (): void => void (response.destroyed || response.write("x".repeat(1 << 20), more));
      more();
    });
    await expect(leases.get("jobs", { signal: never })).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("larger than"),
    });
  });

  it("no message holds the token", async () => {
    const { client } = await fake((_, response) => answer(response, 403), {
      credentials: async () => ({ authorization: "Bearer TOPSECRET" }),
    });
    const error = await client
      .json({ method: "GET", path: "/", what: "asking" }, never)
      .catch((thrown: unknown) => thrown);
    expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toContain("TOPSECRET");
  });
});

describe("deadlines", () => {
  it("an abort destroys the socket, and the next request takes another", async () => {
    let hang = true;
    const { leases, sockets } = await fake((_, response) => void (hang || answer(response, 200, lease(1))));
    const controller = new AbortController();
    const asked = leases.get("jobs", { signal: controller.signal });
    await expect.poll(() => sockets.size, { timeout: 20_000 }).toBe(1);
    controller.abort(new Error("enough"));
    await expect(asked).rejects.toThrow("enough");
    await expect.poll(() => sockets.size, { timeout: 20_000 }).toBe(0);
    hang = false;
    expect((await leases.get("jobs", { signal: never }))?.version).toBe(1n);
  });

  it("also when the answer stops halfway", async () => {
    const { leases, sockets } = await fake((_, response) => {
      response.writeHead(200, { "content-length": "1000" });
      response.write("{");
    });
    const controller = new AbortController();
    const asked = leases.get("jobs", { signal: controller.signal });
    await expect.poll(() => sockets.size, { timeout: 20_000 }).toBe(1);
    setTimeout(() => controller.abort(), 50);
    await expect(asked).rejects.toMatchObject({ name: "ConclaveError" });
    await expect.poll(() => sockets.size, { timeout: 20_000 }).toBe(0);
  });

  it("close ends what is open and refuses what comes after", async () => {
    const { leases, client } = await fake(() => {});
    const asked = leases.get("jobs", { signal: never });
    setTimeout(() => client.close(), 20);
    await expect(asked).rejects.toMatchObject({ code: "state" });
    await expect(leases.get("jobs", { signal: never })).rejects.toMatchObject({ code: "state" });
  });
});

describe("credentials", () => {
  it("are read again after a 401, and used if they changed", async () => {
    let token = "old";
    let refreshed = 0;
    const { leases } = await fake(
      (request, response) =>
        request.headers.authorization === "Bearer new"
          ? answer(response, 200, lease(7))
          : answer(response, 401),
      {
        credentials: async () => ({ authorization: `Bearer ${token}` }),
        refresh: async () => {
          refreshed++;
          token = "new";
        },
      },
    );
    expect((await leases.get("jobs", { signal: never }))?.version).toBe(7n);
    expect(refreshed).toBe(1);
  });

  it("that did not change are not tried twice", async () => {
    const { leases, requests } = await fake((_, response) => answer(response, 401));
    await expect(leases.get("jobs", { signal: never })).rejects.toMatchObject({ code: "forbidden" });
    expect(requests.length).toBe(1);
  });
});

describe("Retry-After", () => {
  it("keeps every request back until it is over, and fails one whose time is up before", async () => {
    let refuse = true;
    const { leases, requests } = await fake((_, response) => {
      if (refuse) answer(response, 429, "{}", { "retry-after": "1" });
      else answer(response, 200, lease(1));
      refuse = false;
    });
    await expect(leases.get("jobs", { signal: never })).rejects.toMatchObject({ code: "unavailable" });
    const at = performance.now();
    const short = new AbortController();
    setTimeout(() => short.abort(), 100);
    await expect(leases.get("jobs", { signal: short.signal })).rejects.toThrow(/Retry-After/);
    expect(requests.length).toBe(1);
    expect((await leases.get("jobs", { signal: never }))?.version).toBe(1n);
    expect(performance.now() - at).toBeGreaterThan(850);
  });
});

describe("the watch", () => {
  interface Stage {
    readonly fake: Fake;
    readonly store: LeaseStore;
    readonly watches: ServerResponse[];
    wakes(): number;
    stop(): void;
  }

  async function watching(get: () => string | number): Promise<Stage> {
    const watches: ServerResponse[] = [];
    const stage = await fake((request, response) => {
      if (request.url?.includes("watch=1")) {
        response.writeHead(200);
        response.flushHeaders();
        watches.push(response);
        return;
      }
      const found = get();
      if (typeof found === "number") answer(response, found);
      else answer(response, 200, found);
    });
    const store = new LeaseStore(systemClock, stage.leases);
    let wakes = 0;
    const stop = new AbortController();
    void store.watch("jobs", () => wakes++, { signal: stop.signal });
    closers.push(() => stop.abort());
    await expect.poll(() => watches.length, { timeout: 20_000 }).toBe(1);
    return { fake: stage, store, watches, wakes: () => wakes, stop: () => stop.abort() };
  }

  const event = (type: string, object: string): string => `{"type":"${type}","object":${object}}\n`;

  it("starts after what a read found, by the object's name, and asks for no list", async () => {
    const { fake } = await watching(() => lease(5, held));
    const url = new URL(`http://x${fake.requests.find((line) => line.includes("watch"))?.split(" ")[1]}`);
    expect(url.pathname).toBe("/apis/coordination.k8s.io/v1/namespaces/ns/leases");
    expect(Object.fromEntries(url.searchParams)).toMatchObject({
      watch: "1",
      fieldSelector: "metadata.name=jobs",
      allowWatchBookmarks: "true",
      resourceVersion: "5",
    });
  });

  it("answers reads while it talks, even in pieces, and wakes for what it brings", async () => {
    const { fake, store, watches, wakes } = await watching(() => lease(5, held));
    const text = Buffer.from(event("MODIFIED", lease(6, { ...held, holderIdentity: "Jürgen" })));
    const before = wakes();
    watches[0]?.write(text.subarray(0, text.indexOf("J") + 2));
    await new Promise((resolve) => setTimeout(resolve, 20));
    watches[0]?.write(text.subarray(text.indexOf("J") + 2));
    await expect.poll(wakes, { timeout: 20_000 }).toBeGreaterThan(before);
    const asked = fake.requests.length;
    expect(await store.read("jobs", { signal: never })).toMatchObject({
      version: 6n,
      record: { holder: "Jürgen" },
    });
    expect(fake.requests.length).toBe(asked);
  });

  it("a deletion is read as such from the server", async () => {
    let gone = false;
    const { store, watches, wakes } = await watching(() => (gone ? 404 : lease(5, held)));
    gone = true;
    const before = wakes();
    watches[0]?.write(event("DELETED", lease(6, held)));
    await expect.poll(wakes, { timeout: 20_000 }).toBeGreaterThan(before);
    expect(await store.read("jobs", { signal: never })).toBeNull();
  });

  it("410 reads the object anew; a cut goes on from what is known; garbage is survived", async () => {
    let version = 5;
    const { fake, watches } = await watching(() => lease(version, held));
    version = 9;
    watches[0]?.end('{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}\n');
    await expect.poll(() => watches.length, { timeout: 20_000 }).toBe(2);
    expect(fake.requests.at(-1)).toContain("resourceVersion=9");
    watches[1]?.write(event("BOOKMARK", lease(12)));
    watches[1]?.write(event("MODIFIED", lease(13, held)));
    await new Promise((resolve) => setTimeout(resolve, 30));
    watches[1]?.destroy();
    await expect.poll(() => watches.length, { timeout: 20_000 }).toBe(3);
    expect(fake.requests.at(-1)).toContain("resourceVersion=13");
    watches[2]?.write("%%%\n");
    await expect.poll(() => watches.length, { timeout: 20_000 }).toBe(4);
  });

  it("that fell silent is not believed, and is opened again once a read knows more than it told", async () => {
    let version = 5;
    const short = { ...held, leaseDurationSeconds: 1 };
    const { fake, store, watches } = await watching(() => lease(version, short));
    await new Promise((resolve) => setTimeout(resolve, 600)); // more than half of its second
    const asked = fake.requests.length;
    version = 6;
    expect(await store.read("jobs", { signal: never })).toMatchObject({ version: 6n });
    expect(fake.requests.length).toBe(asked + 1);
    version = 7;
    expect(await store.read("jobs", { signal: never })).toMatchObject({ version: 7n });
    await expect.poll(() => watches.length, { timeout: 20_000 }).toBe(2);
  });

  it("ends with its last subscriber", async () => {
    const { fake, stop } = await watching(() => lease(5, held));
    stop();
    await expect
      .poll(
        () => [...fake.sockets].filter((socket) => socket.writableLength >= 0 && !socket.destroyed).length,
        { timeout: 20_000 },
      )
      .toBeLessThanOrEqual(1);
    const asked = fake.requests.length;
    await new Promise((resolve) => setTimeout(resolve, 400));
    expect(fake.requests.length).toBe(asked);
  });
});

describe("after a refused write", () => {
  it("the next read asks the server, whatever the watch said", async () => {
    let version = 5;
    const { leases, requests } = await fake((request, response) => {
      if (request.method === "PUT") answer(response, 409, '{"reason":"Conflict"}');
      else if (request.url?.includes("watch")) response.writeHead(200).flushHeaders();
      else answer(response, 200, lease(version, held));
    });
    const store = new LeaseStore(systemClock, leases);
    closers.push(() => store[Symbol.asyncDispose]());
    void store.watch("jobs", () => {}, { signal: never });
    await expect.poll(() => requests.some((line) => line.includes("watch")), { timeout: 20_000 }).toBe(true);
    await expect
      .poll(async () => (await store.read("jobs", { signal: never }))?.version, { timeout: 20_000 })
      .toBe(5n);
    const record = { holder: "me", ttlMs: 15_000, value: "", since: 1, token: null };
    expect(await store.write("jobs", 5n, record, { signal: never })).toBeNull();
    version = 8;
    expect((await store.read("jobs", { signal: never }))?.version).toBe(8n);
  });
});

describe("durable texts", () => {
  it("that are not ours are left alone", async () => {
    const { leases, requests } = await fake((_, response) => answer(response, 200, lease(3)));
    const store = new TextStore(systemClock, leases);
    await expect(store.read("k", { signal: never })).rejects.toMatchObject({ code: "conflict" });
    await expect(store.write("k", 3n, "x", { signal: never })).rejects.toMatchObject({ code: "conflict" });
    await expect(store.write("k", 3n, "x".repeat(300_000), { signal: never })).rejects.toMatchObject({
      code: "invalid",
    });
    expect(requests.every((line) => line.startsWith("GET "))).toBe(true);
  });
});
