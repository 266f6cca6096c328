/** A stream is open ahead when the server, the network or we ourselves go away. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { connect as connectTcp } from "node:net";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { CallLimits, TransactionAnswer } from "../../src/backends/etcd/client.js";
import { Connection } from "../../src/backends/etcd/client/connection.js";
import { parseEndpoint } from "../../src/backends/etcd/client/endpoint.js";
import { GrpcEtcdClient } from "../../src/backends/etcd/client/grpc-client.js";
import { encodeTransaction, methods } from "../../src/backends/etcd/client/messages.js";
import { systemClock } from "../../src/kit/clock.js";
import { type Clock } from "../../src/seam/clock.js";
import { EtcdServer, hasEtcd } from "../support/etcd-server.js";
import { TcpProxy } from "../support/tcp-proxy.js";
import { until } from "../support/until.js";

const limits = (limitMs = 5_000): CallLimits => ({ signal: new AbortController().signal, limitMs });
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe.skipIf(!hasEtcd())("etcd client: faults while a stream is open ahead", () => {
  let server: EtcdServer;
  let direct: GrpcEtcdClient;
  const open: AsyncDisposable[] = [];
  let keys = 0;

  beforeAll(async () => {
    server = await EtcdServer.start();
    direct = server.client();
  });
  afterEach(async () => {
    for (const one of open.splice(0).reverse()) await one[Symbol.asyncDispose]();
  });
  afterAll(async () => {
    await direct[Symbol.asyncDispose]();
    await server.stop();
  });

  /** A client with a watch, whose next transaction's stream is open. */
  async function prepared(endpoint: string): Promise<GrpcEtcdClient> {
    const client = new GrpcEtcdClient({ endpoints: [parseEndpoint(endpoint)] });
    open.push(client);
    const key = `/prepared/${++keys}`;
    const noticed = new Promise((resolve) => client.watch({ key, startRevision: 1n }, resolve));
    await put(client, key);
    await noticed;
    await put(client, key);
    await pause(50);
    return client;
  }

  async function proxied(): Promise<TcpProxy> {
    const proxy = await TcpProxy.start({ port: parseEndpoint(server.endpoints[0]!).port });
    open.push({ [Symbol.asyncDispose]: () => proxy.close() });
    return proxy;
  }

  const put = (client: GrpcEtcdClient, key: string, more = limits()): Promise<TransactionAnswer> =>
    client.transaction({ when: [], then: [{ kind: "put", key, value: "" }], otherwise: [] }, more);

  /** Puts until an answer says so; every error on the way must be a retriable one. Returns how many there were. */
  async function insist(client: GrpcEtcdClient, key: string, limitMs = 1_000): Promise<number> {
    for (let errors = 0; ; errors++) {
      try {
        await put(client, key, limits(limitMs));
        return errors;
      } catch (error) {
        expect(error).toMatchObject({ retriable: true });
        expect(errors).toBeLessThan(50);
      }
    }
  }

  it("a server restarted with its data", { timeout: 60_000 }, async () => {
    for (let i = 0; i < 3; i++) {
      const client = await prepared(server.endpoints[0]!);
      const key = `/restarted/${++keys}`;
      await server.members[0]!.kill();
      server.members[0]!.start();
      if (i > 0) await server.ready();
      await insist(client, key);
      expect(await direct.range({ key }, limits())).toHaveLength(1);
    }
  });

  it("a connection that is cut: at most one error", async () => {
    const proxy = await proxied();
    const client = await prepared(proxy.endpoint);
    for (let i = 0; i < 10; i++) {
      proxy.cut();
      if (i % 2 === 0) await pause(20);
      expect(await insist(client, `/cut/${++keys}`)).toBeLessThanOrEqual(i % 2 === 0 ? 0 : 1);
      await pause(150); // the watch is back
      await put(client, `/cut/${++keys}`);
      await pause(20);
    }
  });

  it("a connection that swallows everything: unknown, and then a new one", { timeout: 60_000 }, async () => {
    const proxy = await proxied();
    for (let i = 0; i < 3; i++) {
      const client = await prepared(proxy.endpoint);
      const key = `/swallowed/${++keys}`;
      proxy.blackHole();
      await expect(put(client, key, limits(400))).rejects.toMatchObject({ code: "timeout" });
      proxy.heal(); // new connections work, the old one stays dead
      expect(await direct.range({ key }, limits())).toEqual([]);
      expect(await insist(client, key)).toBe(0);
      const [kv] = await direct.range({ key }, limits());
      expect(kv?.modRevision).toBe(kv?.createRevision);
    }
  });

  it("a server that is stopped for a while", async () => {
    const client = await prepared(server.endpoints[0]!);
    const key = `/stopped/${++keys}`;
    server.members[0]!.signal("SIGSTOP");
    try {
      await expect(put(client, key, limits(300))).rejects.toMatchObject({ code: "timeout" });
    } finally {
      server.members[0]!.signal("SIGCONT");
    }
    await insist(client, key);
    expect(await direct.range({ key }, limits())).toHaveLength(1);
  });

  it.each(["at once", "later", "busy"])("closed %s: nothing keeps the process", async (when) => {
    const script = fileURLToPath(new URL("fixtures/leaves.mjs", import.meta.url));
    const child = spawn(process.execPath, [script, server.endpoints[0]!, `/leaves/${++keys}`, when], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    const said: string[] = [];
    let closedAt = Infinity;
    child.stdout.on("data", (chunk: Buffer) => {
      closedAt = performance.now();
      said.push(chunk.toString());
    });
    child.stderr.on("data", (chunk: Buffer) => said.push(chunk.toString()));
    const [code] = (await once(child, "exit")) as [number | null];
    expect([code, said.join("")]).toEqual([0, "closed\n"]);
    expect(performance.now() - closedAt).toBeLessThan(2_000);
  });

  it("a timer that finds the session broken before it says so throws nothing", async () => {
    const { host, port } = parseEndpoint(server.endpoints[0]!);
    const socket = connectTcp({ host, port });
    socket.on("error", () => {});
    const session = connectHttp2(`http://${host}:${port}`, { createConnection: () => socket });
    session.on("error", () => {});
    await once(session, "remoteSettings");
    const timers: { delayMs: number; callback: () => void }[] = [];
    const clock: Clock = {
      now: () => systemClock.now(),
      wall: () => systemClock.wall(),
      boot: () => systemClock.boot(),
      random: () => systemClock.random(),
      uniqueId: () => systemClock.uniqueId(),
      after: (delayMs, callback) => {
        timers.push({ delayMs, callback });
        return { cancel: () => {} };
      },
    };
    let ended = 0;
    const connection = new Connection(session, socket, "here", clock, () => ended++);
    const errors: unknown[] = [];
    connection.stream(methods.watch, undefined, { message: () => {}, ended: (error) => errors.push(error) });
    const body = encodeTransaction({ when: [], then: [{ kind: "range", key: "x" }], otherwise: [] });
    const signal = new AbortController().signal;
    const request = { path: methods.txn, body, limitMs: 5_000, signal, again: true };
    await connection.unary(request, undefined);
    await until(() => timers.some(({ delayMs }) => delayMs < 100));
    session.destroy();
    expect(connection.alive).toBe(true); // its "close" comes later
    for (const { delayMs, callback } of timers) if (delayMs < 100) callback();
    expect([connection.alive, ended]).toEqual([false, 1]);
    await expect(connection.unary(request, undefined)).rejects.toMatchObject({ kind: "retriable" });
    await until(() => errors.length === 1);
    expect(errors[0]).toMatchObject({ kind: "retriable" });
  });
});
