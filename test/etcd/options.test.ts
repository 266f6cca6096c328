import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseEndpoint } from "../../src/backends/etcd/client/endpoint.js";
import { Unframer, frame } from "../../src/backends/etcd/client/framing.js";
import { fields, int64, Writer } from "../../src/backends/etcd/client/protobuf.js";
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
  ])("refuses %s", (url, message) => {
    expect(() => clientOptions({ env: {}, ...parseEtcdUrl(url) })).toThrow(message);
  });

  it("never shows a password in a refusal", () => {
    for (const text of ["http://u:geheim@h", "u:geheim@h:1"]) {
      expect(() => parseEndpoint(text)).toThrow(
        expect.not.objectContaining({ message: expect.stringContaining("geheim") }),
      );
    }
    expect(() => clientOptions({ env: { ETCD_USERNAME: "u" } })).toThrow(/without a password/);
    expect(() => parseEtcdUrl("etcd://u:geheim@h#x")).toThrow(/^not an etcd URL: write/);
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
    fc.assert(
      fc.property(fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n), (value) => {
        const read = [...fields(new Writer().int(7, value).finish())];
        expect(read.map((field) => [field.number, int64(field)])).toEqual(value === 0n ? [] : [[7, value]]);
      }),
    );
  });

  it("refuses garbage, and never hangs on it", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        try {
          for (const field of fields(bytes)) expect(field.bytes.length).toBeLessThanOrEqual(64);
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
