import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Unframer, frame } from "../../src/backends/etcd/client/framing.js";
import { Fields, Writer } from "../../src/backends/etcd/client/protobuf.js";
import { candidateId, hex, Keys } from "../../src/backends/etcd/keys.js";
import { clientOptions, parseEtcdUrl, rootOf } from "../../src/backends/etcd/options.js";

describe("etcd URL and environment", () => {
  it("takes several hosts, a prefix, TLS files and a layout", () => {
    expect(
      parseEtcdUrl(
        "etcd://h1:2379,h2:2380/a/b?ca=/ca.pem&cert=/c.pem&key=/k.pem&layout=key&dialTimeout=500ms",
      ),
    ).toEqual({
      endpoints: ["h1:2379", "h2:2380"],
      prefix: "/a/b",
      tls: { ca: "/ca.pem", cert: "/c.pem", key: "/k.pem" },
      layout: "key",
      dialTimeoutMs: 500,
    });
    expect(parseEtcdUrl("etcds://h")).toEqual({ endpoints: ["h"], tls: {} });
    expect(parseEtcdUrl("ETCDS://h")).toEqual({ endpoints: ["h"], tls: {} });
    expect(parseEtcdUrl("etcd://us%40er:p%3Aw@h")).toEqual({
      endpoints: ["h"],
      username: "us@er",
      password: "p:w",
    });
    expect(parseEtcdUrl("etcd:///election")).toEqual({ prefix: "/election" });
  });

  it("falls back to the environment, then to localhost", () => {
    const at = (env: Record<string, string>): unknown => clientOptions({ env }).endpoints;
    expect(at({})).toEqual([{ host: "localhost", port: 2379 }]);
    expect(at({ ETCD_ENDPOINT: "a" })).toEqual([{ host: "a", port: 2379 }]);
    expect(at({ ETCD_ENDPOINT: "a", ETCD_ENDPOINTS: "http://b:1,c:2" })).toEqual([
      { host: "b", port: 1 },
      { host: "c", port: 2 },
    ]);
    expect(clientOptions({ env: { ETCD_ENDPOINTS: "https://b" } }).tls).toEqual({});
    expect(clientOptions({ env: {}, endpoints: "[::1]:7" }).endpoints).toEqual([{ host: "::1", port: 7 }]);
    expect(clientOptions({ env: { ETCD_USERNAME: "u", ETCD_PASSWORD: "p" } }).credentials).toEqual({
      username: "u",
      password: "p",
    });
  });

  it.each([
    ["http://h", /not an etcd URL/],
    ["etcd://h?layout=tree", /layout is "tree"/],
    ["etcd://h?cacert=x", /no parameter "cacert"/],
    ["etcd://h?ca=", /parameter ca .* is empty/],
    ["etcd://h?dialTimeout=5", /dialTimeout/],
    ["etcd://h:99999", /out of range/],
    ["etcd://h/%zz", /broken %-sequence/],
    ["etcd://h?cert=/c.pem", /certificate was given without its key/],
    ["etcd://h?ca=/ca.pem&key=/k.pem", /key was given without its certificate/],
  ])("refuses %s", (url, message) => {
    expect(() => clientOptions({ env: {}, ...parseEtcdUrl(url) })).toThrow(message);
  });

  it("never shows a password in a refusal", () => {
    const lists = [
      "http://u:geheim@h",
      "u:geheim@h:1",
      "http://u:x@geheim@h",
      "http://u:geheim,x@h",
      "http://root:geheim%40host:2379",
      "http://h:1?password=geheim",
      "root:geheim",
    ];
    for (const text of lists) {
      expect(() => clientOptions({ env: { ETCD_ENDPOINTS: text } })).toThrow(
        expect.not.objectContaining({ message: expect.stringContaining("geheim") }),
      );
    }
    expect(() => clientOptions({ env: { ETCD_USERNAME: "u" } })).toThrow(/without a password/);
    expect(() => parseEtcdUrl("etcd://u:geheim@h#x")).toThrow(/^not an etcd URL: write/);
  });

  it.each([
    "etcd://root:geheim/x@h:2379/app",
    "etcd://root:x/geheim@h:2379/app",
    "etcd://root:1234/geheim@h:2379/app",
    "etcd://root:?geheim@h:2379/app",
    "etcd://root:x?geheim=1@h",
    "etcd://u@root:geheim@h",
  ])("neither shows nor dials a password that was not %-encoded: %s", (url) => {
    expect(() => parseEtcdUrl(url)).toThrow(/has an "@" after its hosts/);
    expect(() => parseEtcdUrl(url)).toThrow(
      expect.not.objectContaining({ message: expect.stringContaining("geheim") }),
    );
  });

  it("takes no control character into a key", () => {
    expect(() => rootOf("/ap\u0001p")).toThrow(/control character/);
    expect(rootOf("/app")).toBe("/app/");
  });
});

describe("etcd keys", () => {
  it("lays elections out as Go does", () => {
    const keys = new Keys("");
    expect(keys.queue("/election/scheduler")).toEqual({
      key: "/election/scheduler/",
      rangeEnd: "/election/scheduler0",
    });
    expect(new Keys(rootOf("/app")).election("a")).toBe("/app/a");
    expect(hex(0x694d_7f3a_2b1c_0a0dn)).toBe("694d7f3a2b1c0a0d");
    expect(hex(0xfn)).toBe("f");
  });

  it("takes nothing but one hex id for a candidate", () => {
    const kv = (key: string) => ({ key, value: "", createRevision: 1n, modRevision: 1n, lease: 1n });
    expect(candidateId("a/", kv("a/7f"))).toBe("7f");
    for (const key of ["a/", "a/b/7f", "a/7F", "a/x", "a/0123456789abcdef0", "b/7f"]) {
      expect(() => candidateId("a/", kv(key))).toThrow(/names must not nest/);
    }
  });

  it("keeps records and elections apart", () => {
    const keys = new Keys("");
    expect(() => keys.election("conclave.records/x")).toThrow(/taken by this library/);
    expect(() => keys.election("conclave.records")).toThrow(/taken/);
    expect(keys.election("conclave.recordsX")).toBe("conclave.recordsX");
  });
});

describe("etcd wire format", () => {
  it("brings every int64 back", () => {
    const edges = [7n, 31n, 32n, 49n, 53n, 56n, 63n].flatMap((bits) => [2n ** bits - 1n, -(2n ** bits)]);
    const one = (value: bigint): void => {
      const field = new Fields(new Writer().int(7, value).finish());
      if (value !== 0n) {
        expect(field.next()).toBe(true);
        expect([field.number, field.int, field.bool]).toEqual([7, value, true]);
        expect(field.uint).toBe(BigInt.asUintN(64, value));
      }
      expect(field.next()).toBe(false);
    };
    for (const value of edges) for (const off of [-1n, 0n, 1n]) one(BigInt.asIntN(64, value + off));
    fc.assert(fc.property(fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n), one));
  });

  it("brings text and messages within messages back, whatever their length", () => {
    const text = fc.string({ unit: "grapheme", minLength: 1, maxLength: 300 });
    fc.assert(
      fc.property(fc.array(text, { maxLength: 5 }), fc.uint8Array({ maxLength: 500 }), (texts, bytes) => {
        const writer = new Writer().message(20, (inner) =>
          texts.forEach((one, i) => inner.text(i + 1, one).int(100, 1)),
        );
        const outer = new Fields(writer.bytes(5_000, bytes).finish());
        expect([outer.next(), outer.number]).toEqual([true, 20]);
        const read: string[] = [];
        for (const field = new Fields(outer.bytes); field.next();)
          if (field.number !== 100) read.push(`${field.number} ${field.text}`);
        expect(read).toEqual(texts.map((one, i) => `${i + 1} ${Buffer.from(one).toString()}`));
        expect([outer.next(), outer.number, [...outer.bytes]]).toEqual([true, 5_000, [...bytes]]);
        expect(outer.next()).toBe(false);
      }),
    );
  });

  it("passes over what it does not know", () => {
    const field = new Fields(Uint8Array.of(0x09, 1, 2, 3, 4, 5, 6, 7, 8, 0x15, 1, 2, 3, 4, 0x18, 0x80, 0x00));
    expect([field.next(), field.number, field.int, field.bool]).toEqual([true, 3, 0n, false]);
    expect(field.next()).toBe(false);
  });

  it("refuses garbage, and never hangs on it", () => {
    const refused = (bytes: Uint8Array): void => {
      expect(() => {
        for (const field = new Fields(bytes); field.next(););
      }).toThrow(RangeError);
    };
    refused(Uint8Array.of(0x0a, 2, 1)); // ends inside a field
    refused(Uint8Array.of(0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1)); // a length beyond all
    refused(Uint8Array.of(0x08, 0x80)); // ends inside a number
    refused(Uint8Array.of(0x08, ...Array<number>(11).fill(0x80))); // a number without end
    refused(Uint8Array.of(0x0b)); // groups are of the past
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        try {
          for (const field = new Fields(bytes); field.next();)
            expect(field.bytes.length).toBeLessThanOrEqual(64);
        } catch (error) {
          expect(error).toBeInstanceOf(RangeError);
        }
      }),
    );
  });

  it("puts frames together however they were cut", () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ maxLength: 50 })),
        fc.integer({ min: 1, max: 20 }),
        (messages, size) => {
          const wire = Buffer.concat(messages.map(frame));
          const unframer = new Unframer();
          const out: Buffer[] = [];
          for (let at = 0; at < wire.length; at += size)
            out.push(...unframer.push(wire.subarray(at, at + size)));
          expect(out.map((message) => [...message])).toEqual(messages.map((message) => [...message]));
        },
      ),
    );
    expect(() => new Unframer().push(Buffer.from([0, 255, 255, 255, 255]))).toThrow(RangeError);
  });
});
