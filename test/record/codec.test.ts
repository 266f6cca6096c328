/** Whatever is in a store, decoding it is harmless, and never says "free" by mistake. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeLease, encodeLease } from "../../src/record/codec.js";
import type { LeaseRecord } from "../../src/record/lease.js";

const DAY_MS = 24 * 60 * 60 * 1000;

const records: fc.Arbitrary<LeaseRecord> = fc.record({
  holder: fc.option(fc.string({ minLength: 1, maxLength: 250 })),
  ttlMs: fc.integer({ min: 100, max: DAY_MS }),
  value: fc.string({ maxLength: 1000 }),
  since: fc.double({ noNaN: true, noDefaultInfinity: true }).map((since) => since + 0), // JSON has no -0
  token: fc.option(fc.bigInt({ min: 0n, max: 10n ** 20n - 1n })),
});

/** Things that parse, with the right names and anything in them. */
const lookalikes = fc.record(
  {
    v: fc.oneof(fc.constant(1), fc.anything()),
    ttlMs: fc.oneof(fc.double(), fc.anything()),
    holder: fc.oneof(fc.constant(null), fc.string(), fc.anything()),
    token: fc.oneof(fc.constant(null), fc.string(), fc.anything()),
    since: fc.oneof(fc.double(), fc.anything()),
    value: fc.oneof(fc.string(), fc.anything()),
  },
  { requiredKeys: [] },
);

function text(value: unknown): string {
  return JSON.stringify(value, (_, v: unknown) => (typeof v === "bigint" ? v.toString() : v)) ?? "";
}

function expectSound(record: LeaseRecord): void {
  if (record.holder !== null) expect(record.holder).not.toBe("");
  if (record.ttlMs !== null) {
    expect(record.ttlMs).toBeGreaterThanOrEqual(100);
    expect(record.ttlMs).toBeLessThanOrEqual(DAY_MS);
  }
  expect(typeof record.value).toBe("string");
  expect(Number.isFinite(record.since)).toBe(true);
  if (record.token !== null) expect(record.token).toBeGreaterThanOrEqual(0n);
}

describe("lease codec", () => {
  it("reads back what it wrote", () => {
    fc.assert(
      fc.property(records, (record) => {
        expect(decodeLease(encodeLease(record))).toEqual(record);
      }),
    );
  });

  it("refuses to write what nobody would read back: some characters take six", () => {
    const record = { holder: "a-1", ttlMs: 1000, since: 1, token: 5n };
    const plain = { ...record, value: "x".repeat(16 * 1024) };
    expect(decodeLease(encodeLease(plain))).toEqual(plain);
    const escaped = { ...record, value: "\u0001".repeat(16 * 1024) };
    expect(() => encodeLease(escaped)).toThrow(expect.objectContaining({ code: "invalid" }));
    // Whatever is written can be read: the limits are the same.
    fc.assert(
      fc.property(fc.integer({ min: 10_000, max: 12_000 }), (length) => {
        const value = "\u0001".repeat(length);
        let text: string;
        try {
          text = encodeLease({ ...record, value });
        } catch {
          return;
        }
        expect(decodeLease(text).value).toBe(value);
      }),
    );
  });

  it("clamps a planted ttl to the longest that an election can be given: 24 hours", () => {
    for (const ttlMs of [1e15, 2 * DAY_MS])
      expect(decodeLease(text({ v: 1, ttlMs, holder: "x", token: null, since: 1, value: "" })).ttlMs).toBe(
        DAY_MS,
      );
  });

  it("takes any text for a record in range, and garbage for a holder unknown", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ maxLength: 2000 }), fc.json()), (garbage) => {
        const record = decodeLease(garbage);
        expectSound(record);
        expect(record.holder).not.toBeNull();
      }),
    );
  });

  it("takes look-alikes for a record in range, vacant only if it says so in full", () => {
    fc.assert(
      fc.property(lookalikes, (lookalike) => {
        const record = decodeLease(text(lookalike));
        expectSound(record);
        if (record.holder === null) expect([lookalike.v, lookalike.holder]).toEqual([1, null]);
      }),
      { numRuns: 500 },
    );
  });

  it("does not parse what is too large, nor choke on what is too deep", () => {
    expect(decodeLease("9".repeat(10_000_000)).holder).not.toBeNull();
    expect(decodeLease("[".repeat(60_000)).holder).not.toBeNull();
  });
});

describe("when a holder stops", () => {
  const record = { holder: "a-1", ttlMs: 1000, value: "", since: 1, token: 5n };

  it("is read back, and is absent where the holder does not say", () => {
    expect(decodeLease(encodeLease({ ...record, stopMs: 850 }))).toEqual({ ...record, stopMs: 850 });
    expect(decodeLease(encodeLease(record))).toEqual(record);
  });

  it.each([0, -1, 1001, "850", null, Number.MAX_VALUE])(
    "is not believed if it cannot be meant: %s",
    (stopMs) => {
      const text = encodeLease(record).replace('"holder"', `"stopMs":${JSON.stringify(stopMs)},"holder"`);
      expect(decodeLease(text)).toEqual(record);
    },
  );
});
