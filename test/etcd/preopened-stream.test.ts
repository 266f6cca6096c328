/**
 * The stream that is opened ahead of the next transaction: used when it can be,
 * no harm when it cannot.
 */
import { constants } from "node:http2";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { CallLimits, TransactionAnswer } from "../../src/backends/etcd/client.js";
import { parseEndpoint } from "../../src/backends/etcd/client/endpoint.js";
import { EtcdError } from "../../src/backends/etcd/client/errors.js";
import { GrpcEtcdClient } from "../../src/backends/etcd/client/grpc-client.js";
import { EtcdServer, hasEtcd } from "../support/etcd-server.js";
import { DATA, HEADERS, Http2Tap } from "../support/http2-tap.js";
import { until } from "../support/until.js";

const limits = (limitMs = 5_000): CallLimits => ({ signal: new AbortController().signal, limitMs });
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe.skipIf(!hasEtcd())("etcd client: the next transaction's stream, opened ahead", () => {
  let server: EtcdServer;
  let direct: GrpcEtcdClient;
  let tap: Http2Tap;
  let client: GrpcEtcdClient;
  let keys = 0;

  beforeAll(async () => {
    server = await EtcdServer.start();
    direct = server.client();
  });
  afterEach(async () => {
    await client[Symbol.asyncDispose]();
    await tap.close();
  });
  afterAll(async () => {
    await direct[Symbol.asyncDispose]();
    await server.stop();
  });

  async function open({ watch = true } = {}): Promise<void> {
    tap = await Http2Tap.start(parseEndpoint(server.endpoints[0]!).port);
    client = new GrpcEtcdClient({ endpoints: [parseEndpoint(tap.endpoint)] });
    if (watch) client.watch({ key: "/watched", startRevision: 1n }, () => {});
  }

  /** Puts a key nobody has put before. Done once, its create and mod revisions are the same. */
  const put = (key = `/ahead/${++keys}`, more: CallLimits = limits()): Promise<TransactionAnswer> =>
    client.transaction({ when: [], then: [{ kind: "put", key, value: key }], otherwise: [] }, more);

  /** How often the key was put: 0, 1 or "more". */
  async function puts(key: string): Promise<0 | 1 | "more"> {
    const [kv] = await direct.range({ key }, limits());
    if (kv === undefined) return 0;
    return kv.createRevision === kv.modRevision ? 1 : "more";
  }

  /** Transacts, and waits for the stream that is then opened ahead. */
  async function spare(): Promise<number> {
    await until(() => tap.open.some((stream) => tap.sent(stream) > 0)); // the watch's
    await put();
    await until(() => tap.idle.length === 1);
    return tap.idle[0]!;
  }

  it("is used: the request goes out on it, and the next one is opened after the answer", async () => {
    await open();
    for (let i = 0; i < 5; i++) {
      const stream = await spare();
      const before = tap.frames.length;
      await put();
      await until(() => tap.idle.length === 1);
      const since = tap.frames.slice(before);
      expect(tap.sent(stream)).toBe(1);
      const answered = since.findIndex(
        (frame) => frame.from === "server" && frame.stream === stream && frame.last,
      );
      const opened = since.findIndex((frame) => frame.from === "client" && frame.type === HEADERS);
      expect(answered).toBeGreaterThan(-1);
      expect(opened).toBeGreaterThan(answered);
      expect(since.filter((frame) => frame.from === "client" && frame.type === HEADERS)).toHaveLength(1);
    }
  });

  it("none is opened without a long stream, nor for other calls", async () => {
    await open({ watch: false });
    for (let i = 0; i < 3; i++) await put();
    await pause(50);
    expect(tap.open).toEqual([]);
    client.watch({ key: "/watched", startRevision: 1n }, () => {});
    await until(() => tap.open.length === 1);
    await client.range({ key: "/watched" }, limits());
    await pause(50);
    expect(tap.open).toHaveLength(1);
  });

  it("is given back when the last long stream ends", async () => {
    await open();
    const stream = await spare();
    const watch = tap.open.find((other) => other !== stream)!;
    tap.reset(watch, constants.NGHTTP2_CANCEL);
    await until(() => tap.resetByClient(stream));
    await until(() => tap.open.length === 1); // the watch is resumed
    await put();
  });

  it.each([
    ["reset", (stream: number) => tap.reset(stream, constants.NGHTTP2_CANCEL)],
    ["refused", (stream: number) => tap.reset(stream, constants.NGHTTP2_REFUSED_STREAM)],
    ["reset without an error", (stream: number) => tap.reset(stream, constants.NGHTTP2_NO_ERROR)],
    ["ended in peace", (stream: number) => tap.answer(stream, { ":status": "200", "grpc-status": "0" })],
    [
      "ended as unavailable",
      (stream: number) => tap.answer(stream, { ":status": "200", "grpc-status": "14" }),
    ],
    ["timed out by a gateway", (stream: number) => tap.answer(stream, { ":status": "504" })],
    [
      "answered in part",
      (stream: number) =>
        tap.answer(stream, { ":status": "200" }, { last: false, data: Buffer.from([0, 0, 0, 0, 4, 1]) }),
    ],
  ])("%s while idle: the next transaction does not notice, nothing is left open", async (_, act) => {
    await open();
    for (let i = 0; i < 3; i++) {
      const stream = await spare();
      act(stream);
      await pause(20);
      const key = `/idle/${++keys}`;
      expect((await put(key)).succeeded).toBe(true);
      expect(tap.sent(stream)).toBe(0);
      expect(await puts(key)).toBe(1);
      await until(() => tap.open.length === 2); // the watch and the next one
      expect(tap.open).not.toContain(stream);
    }
  });

  it.each([
    ["reset", (stream: number) => tap.reset(stream, constants.NGHTTP2_CANCEL)],
    ["ended in peace", (stream: number) => tap.answer(stream, { ":status": "200", "grpc-status": "0" })],
    [
      "ended as unavailable",
      (stream: number) => tap.answer(stream, { ":status": "200", "grpc-status": "14" }),
    ],
    ["timed out by a gateway", (stream: number) => tap.answer(stream, { ":status": "504" })],
  ])("%s as the request goes out: unknown, said so, not sent again", async (_, act) => {
    await open();
    const stream = await spare();
    const key = `/crossing/${++keys}`;
    tap.swallow = (frame) => {
      if (frame.stream !== stream || frame.type !== DATA) return false;
      act(stream);
      return true;
    };
    const error = await put(key).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(EtcdError);
    expect(error).toMatchObject({ kind: "retriable", retriable: true });
    expect(tap.sent(stream)).toBe(1);
    expect(await puts(key)).toBe(0);
    tap.swallow = () => false;
    expect((await put(key)).succeeded).toBe(true);
    expect(await puts(key)).toBe(1);
  });

  it(
    "hundreds at once, some given up: none twice, none lost, no stream left",
    { timeout: 60_000 },
    async () => {
      await open();
      for (let round = 0; round < 5; round++) {
        await spare();
        const outcomes = await Promise.all(
          Array.from({ length: 300 }, async (_, i) => {
            const key = `/many/${++keys}`;
            await pause(Math.random() * 40);
            const stop = new AbortController();
            if (i % 3 === 0) setTimeout(() => stop.abort(new Error("enough")), Math.random() * 10);
            const limitMs = i % 3 === 1 ? 1 + Math.random() * 10 : 20_000;
            const answer = await put(key, { signal: stop.signal, limitMs }).catch(() => undefined);
            if (i % 3 === 2) expect(answer).toBeDefined();
            return { key, answer };
          }),
        );
        await put(); // all others are before or behind it
        for (const { key, answer } of outcomes) {
          const [kv] = await direct.range({ key }, limits());
          if (kv !== undefined) expect(kv.modRevision).toBe(kv.createRevision);
          if (answer !== undefined) expect(kv?.createRevision).toBe(answer.revision);
        }
        await until(() => tap.open.length === 2 && tap.idle.length === 1);
      }
    },
  );

  it("given up while on it: nothing is left, the next one is not disturbed", async () => {
    await open();
    for (let i = 0; i < 20; i++) {
      const stream = await spare();
      const stop = new AbortController();
      const reason = new Error("enough");
      const key = `/aborted/${++keys}`;
      const call = put(key, { signal: stop.signal, limitMs: 5_000 });
      if (i % 2 === 0) await Promise.resolve();
      else await until(() => tap.sent(stream) === 1);
      stop.abort(reason);
      await call.catch((caught: unknown) => expect(caught).toBe(reason));
      expect((await put()).succeeded).toBe(true);
      expect(await puts(key)).not.toBe("more");
    }
    await until(() => tap.open.length === 2);
  });

  it("cut at any moment: transactions go on, none is done twice", { timeout: 60_000 }, async () => {
    await open();
    let failures = 0;
    for (let i = 0; i < 150; i++) {
      await until(() =>
        put().then(
          () => true,
          () => false,
        ),
      );
      await pause(Math.random() * 8); // around the moment the next stream is opened
      tap.cut();
      const key = `/cut/${++keys}`;
      if (i % 2 === 0) await pause(0);
      const done = await put(key).then(
        () => true,
        (error: unknown) => {
          expect(error).toMatchObject({ retriable: true });
          failures++;
          return false;
        },
      );
      const count = await puts(key);
      expect(done ? [1] : [0, 1]).toContain(count);
    }
    expect(failures).toBeLessThan(150);
    await spare();
  });
});
