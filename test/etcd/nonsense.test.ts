/** A server, or a proxy before it, that answers nonsense: told as an error, never believed, never asked in a tight loop. */
import type { ServerHttp2Stream } from "node:http2";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { Unframer, frame } from "../../src/backends/etcd/client/framing.js";
import { Fields, Writer } from "../../src/backends/etcd/client/protobuf.js";
import { type EtcdLayout, etcdBackend } from "../../src/backends/etcd/index.js";
import { Election } from "../../src/election/election.js";
import { Bench } from "../support/contest.js";
import { EtcdServer, hasEtcd } from "../support/etcd-server.js";
import { Puppet, say } from "../support/puppet.js";

const TTL = 6_000;
const WHILE_MS = 1_500;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe.skipIf(!hasEtcd())("etcd: nonsense", () => {
  const bench = new Bench();
  let server: EtcdServer;

  beforeAll(async () => {
    server = await EtcdServer.start();
  });
  afterEach(() => bench.cleanUp());
  afterAll(() => server.stop());

  async function puppet(): Promise<Puppet> {
    const one = await Puppet.start(server.endpoints[0]!);
    bench.onEnd(() => one.close());
    return one;
  }

  function stand(
    name: string,
    endpoint: string,
    layout?: EtcdLayout,
  ): { election: Election; errors: unknown[] } {
    const backend = etcdBackend({ endpoints: [endpoint], env: {}, layout });
    const election = new Election({ name, backend, ttlMs: TTL, closeBackend: true });
    const errors: unknown[] = [];
    election.on("error", ({ error }) => errors.push(error));
    bench.onEnd(() => election.close());
    return { election, errors };
  }

  it.each<EtcdLayout>(["queue", "key"])("empty answers to transactions (%s)", async (layout) => {
    const between = await puppet();
    between.take = (stream, path) => {
      if (!path.endsWith("/Txn")) return false;
      say(stream, new Uint8Array());
      return true;
    };
    const { election, errors } = stand(`empty-${layout}`, between.endpoint, layout);
    const stop = new AbortController();
    const running = election.run(async () => {}, { signal: stop.signal });
    await pause(WHILE_MS);
    stop.abort();
    await running;
    expect(between.counts.get("/etcdserverpb.KV/Txn")).toBeLessThan(100);
    expect(errors.length).toBeGreaterThan(0);
    expect(errors[0]).toMatchObject({ code: "unavailable" });
  });

  it("answers that are no messages are errors like any other", async () => {
    const between = await puppet();
    between.take = (stream, path) => {
      if (!path.endsWith("/Txn")) return false;
      say(stream, Uint8Array.of(0x0a, 0xff, 0x01));
      return true;
    };
    const { election } = stand("garbled", between.endpoint);
    await expect(election.leader()).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("unreadable answer"),
    });
  });

  /** Answers every watch by itself. */
  function watches(
    between: Puppet,
    answer: (stream: ServerHttp2Stream, id: bigint, from: bigint) => void,
  ): () => number {
    let asked = 0;
    const create = (stream: ServerHttp2Stream, bytes: Uint8Array): void => {
      let [id, from] = [0n, 0n];
      for (const field = new Fields(bytes); field.next();) {
        if (field.number === 7) id = field.int;
        else if (field.number === 3) from = field.int;
      }
      asked++;
      answer(stream, id, from);
    };
    between.take = (stream, path) => {
      if (!path.endsWith("/Watch")) return false;
      stream.respond({ ":status": 200, "content-type": "application/grpc" });
      const unframer = new Unframer();
      stream.on("data", (chunk: Buffer) => {
        for (const message of unframer.push(chunk))
          for (const field = new Fields(message); field.next();)
            if (field.number === 1) create(stream, field.bytes);
      });
      return true;
    };
    return () => asked;
  }

  const told = (id: bigint, what: (writer: Writer) => void): Buffer => {
    const writer = new Writer().message(1, (header) => header.int(3, 5n)).int(2, id);
    what(writer);
    return frame(writer.finish());
  };

  it("history is said to be gone that nobody asked for: the watch is opened anew, with pauses", async () => {
    const between = await puppet();
    const asked = watches(between, (stream, id, from) => {
      stream.write(told(id, (writer) => writer.bool(3, true)));
      if (from > 0n) stream.write(told(id, (writer) => writer.bool(4, true).int(5, from)));
    });
    const { election } = stand("compacted", between.endpoint);
    const term = await election.campaign();
    await pause(WHILE_MS);
    expect(asked()).toBeLessThan(100);
    expect(term.held).toBe(true);
  });
});
