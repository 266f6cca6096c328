import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeEnvelope, encodeEnvelope, LARGEST_FILE } from "../../src/backends/file/envelope.js";
import { UNKNOWN_HOLDER } from "../../src/record/lease.js";
import { decodeLease } from "../../src/record/codec.js";

const HERE = "elections/n-a";
const bytes = (text: string): Uint8Array => Buffer.from(text);

describe("what a record file holds", () => {
  it("comes back as it was written, whatever the record says", () => {
    const host = {
      bootId: "b",
      pidNs: "pid:[1]",
      timeNs: "time:[1]",
      processes: [{ pid: 7, startTime: "99" }],
    };
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (record) => {
        const envelope = { number: 12n, id: "abc", host, record };
        expect(decodeEnvelope(encodeEnvelope(envelope, HERE), HERE)).toEqual(envelope);
      }),
    );
  });

  it("never throws on garbage, and garbage is held by someone unknown", () => {
    const evil = [
      "",
      "\n",
      "garbage",
      "{}",
      "[]",
      "null",
      '{"v":1}\n{"v":1,"holder":null}',
      '{"v":1,"number":5,"id":"x"}\n{}',
      '{"v":1,"number":"99999999999999999999999","id":"x"}\n{}',
      '{"v":1,"number":"5","id":{}}\n{}',
      "[".repeat(60_000),
      `{"v":1,"number":"5","id":"x"}\n${"[".repeat(60_000)}`,
      '{"__proto__":{"v":1}}\n{}',
      "x".repeat(LARGEST_FILE + 1),
    ];
    for (const text of evil) {
      const { record } = decodeEnvelope(bytes(text), HERE);
      expect(decodeLease(record).holder).toBe(UNKNOWN_HOLDER);
    }
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (data) => void decodeEnvelope(data, HERE)));
  });

  it("is one record or the other, or unreadable, while one is written over the other", () => {
    const written = fc.record({ id: fc.string({ maxLength: 60 }), record: fc.string() });
    fc.assert(
      fc.property(written, written, fc.nat(1024), (one, other, cut) => {
        const [before, after] = [
          { ...one, number: 11n },
          { ...other, number: 12n },
        ];
        const [old, fresh] = [encodeEnvelope(before, HERE), encodeEnvelope(after, HERE)];
        for (const torn of [
          Buffer.concat([fresh.subarray(0, cut), old.subarray(cut)]),
          Buffer.concat([old.subarray(0, cut), fresh.subarray(cut)]),
        ]) {
          const { number, id, record } = decodeEnvelope(torn, HERE);
          if (number === null) continue;
          expect([before, after]).toContainEqual({ number, id, record });
        }
      }),
      // A cut in the middle of a field's name: what is left must not pass for a record without that field.
      { examples: [[{ id: "", record: "" }, { id: " ", record: "" }, 31]] },
    );
  });

  it("is unreadable in another directory: by the time it was read the file was written over for that one", () => {
    const written = encodeEnvelope({ number: 12n, id: "abc", record: "free" }, "elections/n-b");
    expect(decodeEnvelope(written, HERE)).toEqual({ number: null, id: "", record: "" });
  });

  it("keeps the ttl, and only that, of a record without a checksum: its leader may still renew it", () => {
    const text =
      '{"v":1,"number":"5","id":"x"}\n{"v":1,"ttlMs":60000,"holder":null,"token":null,"since":1,"value":""}';
    const { record, number } = decodeEnvelope(bytes(text), HERE);
    expect(number).toBeNull();
    expect(decodeLease(record)).toMatchObject({ holder: UNKNOWN_HOLDER, ttlMs: 60000 });
  });

  it("keeps the ttl, and only that, of a format it does not know", () => {
    const text =
      '{"v":2,"number":"5","id":"x"}\n{"v":1,"ttlMs":60000,"holder":null,"token":null,"since":1,"value":""}';
    const { record, number } = decodeEnvelope(bytes(text), HERE);
    expect(number).toBe(5n);
    expect(decodeLease(record)).toMatchObject({ holder: UNKNOWN_HOLDER, ttlMs: 60000 });
  });
});
