/** The watch, and what reads make of it, against a server that answers what the test says. */
import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { LeaseStore } from "../../src/backends/kubernetes/store.js";
import { systemClock } from "../../src/kit/clock.js";
import { after, answer, closeAfterEach, fake, held, lease, never } from "./support/fake.js";
import type { Fake } from "./support/fake.js";

closeAfterEach();

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
    after(() => stop.abort());
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
    after(() => store[Symbol.asyncDispose]());
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

  it("nor whatever it says after the refusal", async () => {
    let version = 5;
    let watch: ServerResponse | undefined;
    const { leases } = await fake((request, response) => {
      if (request.method === "PUT") answer(response, 409, '{"reason":"Conflict"}');
      else if (request.url?.includes("watch")) (watch = response).writeHead(200).flushHeaders();
      else answer(response, 200, lease(version, { ...held, holderIdentity: `holder ${version}` }));
    });
    const store = new LeaseStore(systemClock, leases);
    after(() => store[Symbol.asyncDispose]());
    let wakes = 0;
    void store.watch("jobs", () => wakes++, { signal: never });
    await expect.poll(() => watch, { timeout: 20_000 }).toBeDefined();
    await expect
      .poll(async () => (await store.read("jobs", { signal: never }))?.version, { timeout: 20_000 })
      .toBe(5n);
    version = 8;
    const record = { holder: "me", ttlMs: 15_000, value: "", since: 1, token: null };
    expect(await store.write("jobs", 5n, record, { signal: never })).toBeNull();
    version = 9;
    // A watch that lags: it delivers what was overwritten long ago.
    const before = wakes;
    watch?.write(`{"type":"MODIFIED","object":${lease(8, held)}}\n`);
    await expect.poll(() => wakes, { timeout: 20_000 }).toBeGreaterThan(before);
    expect((await store.read("jobs", { signal: never }))?.version).toBe(9n);
  });
});

describe("a write on a Lease that someone edits all the time", () => {
  const record = { holder: "me", ttlMs: 15_000, value: "v", since: 1, token: 5n };
  const mine = { ...held, holderIdentity: "me" };

  /** Before every PUT arrives somebody has edited a label; `patch` says what becomes of patches. */
  async function edited(
    patch: (response: ServerResponse, version: number) => void,
    spec: () => object = () => mine,
  ): Promise<{ store: LeaseStore; methods: string[]; bodies: string[] }> {
    let version = 5;
    const methods: string[] = [];
    const bodies: string[] = [];
    const annotated = (): string => {
      const object = JSON.parse(lease(version, spec()));
      return JSON.stringify({ ...object, metadata: { ...object.metadata, annotations: { a: "b" } } });
    };
    const { leases } = await fake((request, response, body) => {
      methods.push(request.method ?? "");
      if (request.method === "GET") return answer(response, 200, annotated());
      bodies.push(body);
      version++;
      if (request.method === "PATCH") return patch(response, version);
      const late = methods.filter((method) => method === "PUT").length < 4;
      answer(response, late ? 409 : 200, late ? '{"reason":"Conflict"}' : lease(version, mine));
    });
    const store = new LeaseStore(systemClock, leases);
    after(() => store[Symbol.asyncDispose]());
    expect((await store.read("jobs", { signal: never }))?.version).toBe(5n);
    return { store, methods, bodies };
  }

  it("is a patch that names what must be as it was read", async () => {
    const { store, methods, bodies } = await edited((response, version) =>
      answer(response, 200, lease(version, mine)),
    );
    expect((await store.write("jobs", 5n, record, { signal: never }))?.version).toBe(7n);
    expect(methods).toEqual(["GET", "PUT", "GET", "PATCH"]);
    const steps: { op: string; path: string; value: unknown }[] = JSON.parse(bodies[1] ?? "");
    const tests = steps.filter(({ op }) => op === "test").map(({ path, value }) => [path, value]);
    expect(tests).toEqual([
      ["/metadata/uid", "u"],
      ["/spec/holderIdentity", "me"],
      ["/spec/leaseDurationSeconds", 15],
      ["/spec/acquireTime", held.acquireTime],
      ["/spec/renewTime", held.renewTime],
      ["/spec/leaseTransitions", 0],
    ]);
    const added = steps.filter(({ op }) => op === "add").map(({ path }) => path);
    expect(added).toContain("/metadata/annotations/conclave~1term");
    expect(steps.find(({ op, path }) => op === "add" && path === "/spec/renewTime")?.value).not.toBe(
      held.renewTime,
    );
  });

  it("is an update, again and again, where patches are forbidden", async () => {
    const { store, methods } = await edited((response) => answer(response, 403, '{"reason":"Forbidden"}'));
    expect(await store.write("jobs", 5n, record, { signal: never })).not.toBeNull();
    expect(methods).toEqual(["GET", "PUT", "GET", "PATCH", "PUT", "GET", "PUT", "GET", "PUT"]);
  });

  it("is refused as soon as the record itself is another one", async () => {
    let spec: object = mine;
    const { store, methods } = await edited(
      (response) => answer(response, 422, '{"reason":"Invalid"}'),
      () => spec,
    );
    spec = { ...mine, renewTime: "2026-01-01T00:00:01.000000Z" };
    expect(await store.write("jobs", 5n, record, { signal: never })).toBeNull();
    expect(methods).toEqual(["GET", "PUT", "GET"]);
  });
});
