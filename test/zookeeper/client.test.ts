/** The wire client against servers that misbehave. */
import { describe, expect, it, onTestFinished } from "vitest";
import { parseEndpoint } from "../../src/backends/zookeeper/client/endpoint.js";
import { JuteWriter } from "../../src/backends/zookeeper/client/jute.js";
import { WireZooKeeperClient } from "../../src/backends/zookeeper/client/wire-client.js";
import type { ZooKeeperConnection, ZooKeeperSession } from "../../src/backends/zookeeper/client.js";
import { until } from "../support/until.js";
import { connected, header, type StubAnswers, ZooKeeperStub } from "../support/zookeeper-stub.js";

const limits = { signal: new AbortController().signal, limitMs: 3_000 };

async function session(answers: StubAnswers): Promise<{
  stub: ZooKeeperStub;
  session: ZooKeeperSession;
  connection: ZooKeeperConnection;
}> {
  const stub = await ZooKeeperStub.start(answers);
  onTestFinished(() => stub.stop());
  const client = new WireZooKeeperClient({ endpoints: [parseEndpoint(stub.host)] });
  onTestFinished(() => client[Symbol.asyncDispose]());
  const opened = await client.openSession(4_000, limits);
  return { stub, session: opened, connection: await opened.connected(limits) };
}

describe("ZooKeeper's wire client", () => {
  it.each([
    ["an answer to another request", (xid: number) => header(xid + 1).frame()],
    ["a frame that is too short", () => new JuteWriter().int(1).frame()],
    ["a frame of 2 GiB", () => Buffer.from([0x7f, 0xff, 0xff, 0xff])],
    ["a list of more names than fit", (xid: number) => header(xid).int(1_000_000).frame()],
    ["text instead of ZooKeeper", () => Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n")],
  ])("gives a connection up that brings %s, and what was asked stays unknown", async (_, answer) => {
    const { connection } = await session({ answer: ({ xid }) => answer(xid) });
    await expect(connection.getChildren("/x", limits)).rejects.toMatchObject({
      ...{ code: "unavailable", kind: "retriable", errno: undefined },
    });
    expect(connection.closed).toBe(true);
  });

  it("an answer that nobody waits for any more does no harm", async () => {
    let first = true;
    const { connection } = await session({
      answer: ({ xid }) => {
        if (!first)
          return Buffer.concat([
            header(xid - 1)
              .int(0)
              .frame(),
            header(xid).int(1).text("b").frame(),
          ]);
        first = false;
        return undefined;
      },
    });
    await expect(connection.getChildren("/x", { ...limits, limitMs: 50 })).rejects.toMatchObject({
      code: "timeout",
    });
    expect(await connection.getChildren("/x", limits)).toEqual(["b"]);
  });

  it("keeps id and password over connections, and reports an end only if it is told of one", async () => {
    const asked: { id: bigint; password: string }[] = [];
    let over = false;
    const { session: opened, connection } = await session({
      connect: (request) => {
        request.int();
        request.long();
        request.int();
        asked.push({ id: request.long(), password: request.buffer().toString("hex") });
        return over ? connected(0, 0n) : connected();
      },
    });
    connection.drop("the test says so");
    const second = await opened.connected(limits);
    expect(second).not.toBe(connection);
    expect(asked).toEqual([
      { id: 0n, password: "00".repeat(16) },
      { id: 77n, password: "01".repeat(16) },
    ]);
    expect(opened.expired).toBe(false);
    over = true;
    const expired = new Promise<void>((resolve) => opened.listen({ connected: () => {}, expired: resolve }));
    second.drop("again");
    await expired;
    expect(opened.expired).toBe(true);
    await expect(opened.connected(limits)).rejects.toMatchObject({ kind: "lost" });
  });

  it("a session of another id is no answer to ours", async () => {
    let first = true;
    const { session: opened, connection } = await session({
      connect: () => {
        const id = first ? 77n : 78n;
        first = false;
        return connected(4_000, id);
      },
    });
    connection.drop("the test says so");
    await expect(opened.connected({ ...limits, limitMs: 500 })).rejects.toMatchObject({
      code: "unavailable",
    });
    expect(opened.expired).toBe(false);
  });

  it("moves on when a server says that the session has moved", async () => {
    const { session: opened, connection } = await session({
      answer: ({ xid }) => header(xid, -118).frame(),
    });
    await expect(connection.getChildren("/x", limits)).rejects.toMatchObject({
      errno: -118,
      retriable: true,
    });
    expect(connection.closed).toBe(true);
    expect(await opened.connected(limits)).not.toBe(connection);
  });

  it("gives a server up that says nothing any more", async () => {
    const {
      session: opened,
      connection,
      stub,
    } = await session({
      connect: () => connected(600),
      answer: () => undefined,
    });
    await until(() => connection.closed);
    expect(await opened.connected(limits)).not.toBe(connection);
    expect(stub.connections).toBeGreaterThan(0);
  });

  it.each([
    ["a server that closes the connection", () => undefined, /refused a session.*read-only/],
    ["a read-only server", () => connected(4_000, 77n, true), /read-only/],
    ["a server that grants nothing", () => connected(0, 0n), /granted no session/],
  ])("refuses %s, and says so", async (_, connect, message) => {
    const stub = await ZooKeeperStub.start({ connect });
    onTestFinished(() => stub.stop());
    const client = new WireZooKeeperClient({ endpoints: [parseEndpoint(stub.host)] });
    await expect(client.openSession(4_000, limits)).rejects.toThrow(message);
    await client[Symbol.asyncDispose]();
    await until(() => stub.connections === 0);
  });

  it("tries all hosts, and leaves nothing open after closing", async () => {
    const stub = await ZooKeeperStub.start({});
    onTestFinished(() => stub.stop());
    const client = new WireZooKeeperClient({
      endpoints: ["127.0.0.1:1", stub.host, "127.0.0.1:2"].map(parseEndpoint),
    });
    await client.openSession(4_000, limits);
    await client[Symbol.asyncDispose]();
    await until(() => stub.connections === 0);
    await expect(client.openSession(4_000, limits)).rejects.toMatchObject({ code: "state" });
  });

  it("a failed transaction is an answer", async () => {
    const failed = (xid: number): Buffer =>
      header(xid, -101).int(-1).bool(false).int(-101).int(-101).int(-1).bool(true).int(-1).frame();
    const { connection } = await session({ answer: ({ xid }) => failed(xid) });
    expect(await connection.check(["/a"], limits)).toEqual({ index: 0, errno: -101 });
  });

  it.each([
    [-115, "forbidden", false],
    [-124, "unsupported", false],
    [-120, "unsupported", false],
    [-122, "timeout", true],
    [-9999, "unavailable", true],
  ] as const)("error %d is %s", async (errno, code, retriable) => {
    const { connection } = await session({ answer: ({ xid }) => header(xid, errno).frame() });
    await expect(connection.getData("/x", limits)).rejects.toMatchObject({ code, retriable });
  });
});
