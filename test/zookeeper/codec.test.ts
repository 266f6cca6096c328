/** The wire format, and bytes that no ZooKeeper would send. */
import { describe, expect, it } from "vitest";
import { FrameReader } from "../../src/backends/zookeeper/client/framing.js";
import { JuteError, JuteReader, JuteWriter } from "../../src/backends/zookeeper/client/jute.js";
import * as messages from "../../src/backends/zookeeper/client/messages.js";

const body = (writer: JuteWriter): Buffer => writer.frame().subarray(4);
const reader = (writer: JuteWriter): JuteReader => new JuteReader(body(writer));

describe("jute", () => {
  it("writes and reads every type, exactly", () => {
    const far = 2n ** 62n + 1n;
    const back = reader(
      new JuteWriter()
        .int(-7)
        .long(far)
        .bool(true)
        .text("päth/😀")
        .buffer(Buffer.from([0, 255])),
    );
    expect([back.int(), back.long(), back.bool(), back.text(), [...back.buffer()], back.left]).toEqual([
      ...[-7, far, true, "päth/😀"],
      ...[[0, 255], 0],
    ]);
  });

  it("reads a null buffer and a null vector as empty", () => {
    expect(reader(new JuteWriter().int(-1)).text()).toBe("");
    expect(reader(new JuteWriter().int(-1)).vector(4, () => 1)).toEqual([]);
  });

  it.each([
    ["a length below -1", (r: JuteReader) => r.buffer(), new JuteWriter().int(-2)],
    ["a length beyond the frame", (r: JuteReader) => r.buffer(), new JuteWriter().int(2 ** 31 - 1)],
    [
      "a count beyond the frame",
      (r: JuteReader) => r.vector(4, () => r.text()),
      new JuteWriter().int(2 ** 31 - 1),
    ],
    ["a negative count", (r: JuteReader) => r.vector(4, () => r.text()), new JuteWriter().int(-5)],
    ["a frame that ends in a number", (r: JuteReader) => r.long(), new JuteWriter().int(1)],
    [
      "a boolean that is none",
      (r: JuteReader) => r.bool(),
      new JuteWriter().buffer(Buffer.from([7, 7])).int(0),
    ],
  ])("refuses %s", (what, read, writer) => {
    const bytes = body(writer);
    expect(() => read(new JuteReader(what.startsWith("a boolean") ? bytes.subarray(4) : bytes))).toThrow(
      JuteError,
    );
  });
});

describe("frames", () => {
  it("come whole, however they are cut", () => {
    const bytes = Buffer.concat([new JuteWriter().text("one").frame(), new JuteWriter().int(2).frame()]);
    for (let size = 1; size <= bytes.length; size++) {
      const frames = new FrameReader();
      const found: Buffer[] = [];
      for (let at = 0; at < bytes.length; at += size)
        found.push(...frames.push(bytes.subarray(at, at + size)));
      expect(found.map((frame) => frame.length)).toEqual([7, 4]);
      expect(new JuteReader(found[0]!).text()).toBe("one");
    }
  });

  it.each([-1, 4 * 1024 * 1024 + 1])("of %d bytes are refused before they are there", (length) => {
    const head = Buffer.alloc(4);
    head.writeInt32BE(length);
    expect(() => new FrameReader().push(head)).toThrow(JuteError);
  });
});

describe("messages", () => {
  const stat = (writer: JuteWriter): JuteWriter =>
    writer.long(11n).long(12n).long(1n).long(2n).int(3).int(4).int(5).long(-9n).int(6).int(7).long(13n);

  it("a stat has its fields where ZooKeeper has them", () => {
    expect(messages.stat(reader(stat(new JuteWriter())))).toEqual({
      ...{ czxid: 11n, mzxid: 12n, version: 3, ephemeralOwner: -9n, numChildren: 7 },
    });
  });

  it("a connect request is that of zookeeper.jute", () => {
    const frame = messages.connectRequest({
      lastZxid: 5n,
      timeoutMs: 6000,
      sessionId: 7n,
      password: Buffer.alloc(16),
    });
    const back = new JuteReader(frame.subarray(4));
    expect([
      back.int(),
      back.long(),
      back.int(),
      back.long(),
      back.buffer().length,
      back.bool(),
      back.left,
    ]).toEqual([...[0, 5n, 6000, 7n], ...[16, false, 0]]);
  });

  it("a connect response may lack the read-only flag, as of servers before 3.4", () => {
    const old = new JuteWriter().int(0).int(4000).long(1n).buffer(Buffer.alloc(16));
    expect(messages.connectResponse(body(old)).readOnly).toBe(false);
    expect(messages.connectResponse(body(old.bool(true))).readOnly).toBe(true);
  });

  it("checks that all held", () => {
    const held = (writer: JuteWriter): JuteWriter => writer.int(13).bool(false).int(0);
    const answer = held(held(new JuteWriter())).int(-1).bool(true).int(-1);
    expect(messages.checkResults(reader(answer), 2)).toBeUndefined();
  });

  it("checks of which one failed name the first, not those that were undone for it", () => {
    const failed = (writer: JuteWriter, errno: number): JuteWriter =>
      writer.int(-1).bool(false).int(errno).int(errno);
    const answer = failed(failed(failed(new JuteWriter(), 0), -101), -2)
      .int(-1)
      .bool(true)
      .int(-1);
    expect(messages.checkResults(reader(answer), 3)).toEqual({ index: 1, errno: -101 });
  });

  it.each([
    ["have no end", new JuteWriter().int(13).bool(false).int(0).int(13).bool(false).int(0)],
    ["are of another kind", new JuteWriter().int(1).bool(false).int(0)],
    ["are too few", new JuteWriter()],
  ])("checks whose results %s are refused", (_, writer) => {
    expect(() => messages.checkResults(reader(writer), 1)).toThrow(JuteError);
  });
});
