/** Whoever reaches the port of a voter: without the key, with recorded traffic, slowly, in masses, with huge frames. */
import { once } from "node:events";
import { connect } from "node:net";
import type { Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RaftBackend } from "../../src/backends/raft/backend.js";
import { Peering } from "../../src/backends/raft/peering.js";
import { clusterId, listText, parsePeer } from "../../src/backends/raft/address.js";
import { FRAME, FrameReader, LONGEST_FRAME, plain, Seal } from "../../src/backends/raft/transport/frames.js";
import { decodeAnswer, decodeRequest } from "../../src/backends/raft/transport/wire.js";
import { systemClock } from "../../src/kit/clock.js";
import type { Hold } from "../../src/seam/backend.js";
import { tcpRecorder } from "../support/raft-recorder.js";
import { until } from "../support/until.js";
import { KEY, RaftCluster } from "../support/raft-cluster.js";

const signal = new AbortController().signal;
/** Connections that a voter keeps while they have not shown the key. */
const STRANGERS = 64;
let cluster: RaftCluster;
let leader: RaftBackend;
let hold: Hold;

beforeAll(async () => {
  cluster = await RaftCluster.start();
  leader = cluster.voter("n1");
  const candidacy = {
    election: "e",
    candidate: "leader",
    value: "",
    ttlMs: 60_000,
    retryMs: 50,
    attemptMs: 5_000,
  };
  hold = (await leader.campaign(candidacy, { wait: true, signal }))!;
});
afterAll(() => cluster.stop());

/** The leader leads, in its term, and voters answer. */
async function undisturbed(): Promise<void> {
  expect(await hold.renew({ signal })).not.toBe("lost");
  const seen = leader.observe("e", { signal, pollMs: 500, attemptMs: 5_000 });
  const { value } = await seen.next();
  expect(value).toMatchObject({ candidate: "leader", token: hold.token });
  await seen.return(undefined);
}

function dial(port = cluster.ports[0]!): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => resolve(socket));
    socket.once("error", reject);
  });
}

function closed(socket: Socket): Promise<void> {
  socket.on("error", () => {});
  socket.resume();
  return new Promise((resolve) => (socket.closed ? resolve() : socket.once("close", () => resolve())));
}

/** Sent away for these bytes at once: somebody who came earlier and says nothing is still there. */
async function refusedFor(bytes: Buffer): Promise<void> {
  const silent = await dial();
  void closed(silent);
  const socket = await dial();
  socket.write(bytes);
  await closed(socket);
  await undisturbed();
  expect(silent.closed, bytes.subarray(0, 40).toString("latin1")).toBe(false);
  silent.destroy();
}

/** The beginning of a frame of this length. */
function announced(length: number): Buffer {
  const head = Buffer.alloc(4);
  head.writeUInt32BE(length);
  return head;
}

/** Somebody who has the key, and says what it likes. */
function insider(): Peering {
  const peers = cluster.peers.map(parsePeer);
  const own = {
    name: "client:insider",
    voter: false,
    cluster: clusterId(peers),
    list: listText(peers),
    secret: Buffer.from(KEY),
  };
  return new Peering({ own, peers, clock: systemClock });
}

describe("hostile peers", () => {
  it("a frame that is announced too long is not waited for", async () => {
    for (const length of [LONGEST_FRAME + 1, 100 * 1024 * 1024, 2 ** 32 - 1, 0, 3])
      await refusedFor(announced(length));
    await undisturbed();
  });

  it("whoever has another key gets no answer, moves no term, and is told why", async () => {
    const wrong = new RaftBackend({ ...cluster.options(), key: "z".repeat(40) });
    const candidacy = { election: "e", candidate: "w", value: "", ttlMs: 500, retryMs: 50, attemptMs: 1_500 };
    await expect(wrong.campaign(candidacy, { wait: false, signal })).rejects.toThrow(/same key/);
    await wrong[Symbol.asyncDispose]();
    await undisturbed();
  });

  it("garbage, and a greeting for another name, end the connection", async () => {
    const greeting = (name: string, voter: boolean, to: string): Buffer =>
      plain(FRAME.hello, Buffer.from(JSON.stringify({ name, voter, to, nonce: "0".repeat(64) })));
    const all = [
      Buffer.from("GET / HTTP/1.1\r\n\r\n"),
      Buffer.alloc(100_000, 7),
      plain(FRAME.hello, Buffer.from("null")),
      plain(FRAME.request, Buffer.from("{}")),
      greeting("client:x", false, "n2"),
      greeting("client:x", true, "n1"),
      greeting("n2", false, "n1"),
    ];
    for (const bytes of all) await refusedFor(bytes);
    await undisturbed();
  });

  it("a byte a second is not a greeting", async () => {
    const socket = await dial();
    // Of a frame that may be that long: only its slowness is wrong with it.
    socket.write(announced(1_000));
    const timer = setInterval(() => socket.write(Buffer.from([1])), 1_000);
    await closed(socket).finally(() => clearInterval(timer));
    await undisturbed();
  }, 20_000);

  it("a thousand connections leave room for those with the key, and memory as it was", async () => {
    const before = process.memoryUsage().rss;
    const early = await dial();
    const timeIsUp = closed(early).then(() => "those that came first were sent away for silence");
    const sockets: Socket[] = [];
    const ends: Promise<void>[] = [];
    // No more at once than the system queues for a server.
    for (let nth = 0; nth < 10; nth++) {
      const some = Array.from({ length: 100 }, () => connect(cluster.ports[0]!, "127.0.0.1"));
      sockets.push(...some);
      ends.push(...some.map((socket) => closed(socket)));
      await Promise.all(some.map((socket) => once(socket, "connect").catch(() => {})));
    }
    const refused = Promise.all(ends.slice(STRANGERS)).then(() => "all but the first were refused");
    expect(await Promise.race([refused, timeIsUp])).toBe("all but the first were refused");
    await undisturbed();
    for (const socket of [early, ...sockets]) socket.destroy();
    expect(process.memoryUsage().rss - before).toBeLessThan(150 * 1024 * 1024);
    const late = cluster.backend();
    await until(async () => (await late.records.read("x", { signal }).catch(() => "no")) === null, 15_000);
    await late[Symbol.asyncDispose]();
  }, 30_000);

  it("recorded traffic, sent again, is not a frame of the new connection", async () => {
    const recorder = await tcpRecorder(cluster.ports[0]!);
    const recorded = cluster.backend(undefined, { dial: { n1: `127.0.0.1:${recorder.port}` } });
    const candidacy = { election: "r", candidate: "r", value: "", ttlMs: 500, retryMs: 50, attemptMs: 5_000 };
    const won = await recorded.campaign(candidacy, { wait: true, signal });
    await recorded.records.write("replayed", null, "once", { signal });
    await won!.release({ signal });
    await recorded[Symbol.asyncDispose]();
    const term = won!.token;
    for (let round = 0; round < 3; round++) {
      const socket = await dial();
      socket.write(recorder.sent());
      await closed(socket);
    }
    await recorder.close();
    const next = cluster.backend();
    const again = await next.campaign({ ...candidacy, candidate: "r2" }, { wait: true, signal });
    expect(again!.token).toBe(term + 1n);
    await again!.release({ signal });
    await next[Symbol.asyncDispose]();
    await undisturbed();
    // Another cluster with the same key: not even the greeting is for it.
    const other = await RaftCluster.start();
    try {
      for (const port of other.ports) {
        const socket = await dial(port);
        socket.write(recorder.sent());
        await closed(socket);
      }
      for (const name of other.names) {
        const listed = await other.voter(name).list({ signal });
        expect(listed.names, name).toEqual([]);
      }
      const backend = other.backend();
      expect(await backend.records.read("replayed", { signal })).toBeNull();
      await backend[Symbol.asyncDispose]();
    } finally {
      await other.stop();
    }
  }, 40_000);

  it("forged terms move nothing, even with the key", async () => {
    const peering = insider();
    const bid = { id: "f", candidate: "forger" };
    for (const term of [2n ** 53n, hold.token + 10n ** 9n, hold.token + 1n, hold.token]) {
      for (const voter of cluster.names) {
        const forged = { election: "e", term, bid, leaseMs: 1_000 };
        const vote = await peering.ask(voter, { kind: "vote", ...forged }, 5_000);
        expect(vote).toMatchObject({ yes: false });
        const beat = { kind: "beat", ...forged, opened: true, version: 0, value: "", since: 0 } as const;
        expect(await peering.ask(voter, beat, 5_000)).toMatchObject({ yes: false });
        const release = { kind: "release", election: "e", term, candidate: "forger" } as const;
        expect(await peering.ask(voter, release, 5_000)).toMatchObject({ held: false });
      }
    }
    for (const term of [2n ** 53n, BigInt(Date.now()) + 10n ** 9n]) {
      const vote = { kind: "vote", election: "never held", term, bid, leaseMs: 1_000 } as const;
      expect(await peering.ask("n1", vote, 5_000)).toMatchObject({ yes: false, why: "ahead" });
    }
    peering.close();
    await undisturbed();
  });

  it("a sealed frame opens once, in its place, with its key", () => {
    const [out, into] = [new Seal(Buffer.alloc(32, 1)), new Seal(Buffer.alloc(32, 1))];
    const frames = [out.close(3, Buffer.from("a")), out.close(3, Buffer.from("b"))].map((frame) =>
      frame.subarray(4),
    );
    expect(() => new Seal(Buffer.alloc(32, 2)).open(frames[0]!)).toThrow(/not sealed/);
    const bent = Buffer.from(frames[0]!);
    bent[11]! ^= 1;
    expect(() => new Seal(Buffer.alloc(32, 1)).open(bent)).toThrow(/not sealed/);
    expect(() => new Seal(Buffer.alloc(32, 1)).open(frames[1]!)).toThrow(/out of its order/);
    expect(into.open(frames[0]!).body.toString()).toBe("a");
    expect(() => into.open(frames[0]!)).toThrow(/out of its order/);
  });

  it("bodies that are none are not taken for messages", () => {
    for (const text of [
      "",
      "null",
      "[]",
      "{}",
      '{"kind":"vote"}',
      '{"kind":"__proto__"}',
      '{"kind":"beat","term":{"n":"x"}}',
    ])
      expect(decodeRequest(Buffer.from(text)) ?? decodeAnswer(Buffer.from(text)), text).toBeUndefined();
    const reader = new FrameReader();
    expect(() => [...reader.push(Buffer.alloc(8, 255))]).toThrow(/bytes/);
  });
});
