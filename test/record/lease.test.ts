import { describe, expect, test } from "vitest";
import type { Entry } from "../../src/index.js";
import { decodeLease, encodeLease } from "../../src/record/codec.js";
import { decideTakeover, leaderFromRecord, observed, UNKNOWN_HOLDER } from "../../src/record/lease.js";
import type { LeaseRecord } from "../../src/record/lease.js";

const record = (over: Partial<LeaseRecord> = {}): LeaseRecord => ({
  holder: "a-1",
  ttlMs: 1000,
  value: "v",
  since: 5,
  token: null,
  ...over,
});
const entry = (version: bigint, over: Partial<LeaseRecord> = {}): Entry<LeaseRecord> => ({
  version,
  record: record(over),
});

describe("may I take it?", () => {
  test("absent and vacant records are open", () => {
    expect(decideTakeover(null, undefined, "b-1", 1000, 0)).toEqual({ kind: "open", expected: null });
    expect(decideTakeover(entry(7n, { holder: null }), undefined, "b-1", 1000, 0)).toEqual({
      kind: "open",
      expected: 7n,
    });
  });

  test("a record never seen before is held for its whole ttl, not for mine", () => {
    expect(decideTakeover(entry(7n), undefined, "b-1", 10, 0)).toEqual({ kind: "held", waitMs: 1000 });
  });

  test("silence is counted from when I saw the change, on my clock", () => {
    const seen = observed(undefined, entry(7n), 100, 1000);
    expect(decideTakeover(entry(7n), seen, "b-1", 1000, 1099)).toEqual({ kind: "held", waitMs: 1 });
    expect(decideTakeover(entry(7n), seen, "b-1", 1000, 1100)).toEqual({ kind: "open", expected: 7n });
  });

  test("a renewal starts the wait anew", () => {
    const seen = observed(observed(undefined, entry(7n), 100, 1000), entry(8n), 900, 1000);
    expect(decideTakeover(entry(8n), seen, "b-1", 1000, 1500)).toEqual({ kind: "held", waitMs: 400 });
  });

  test("a write that is no renewal does not", () => {
    const marked = (version: bigint) => ({ ...entry(version), renewalId: "same" });
    const seen = observed(observed(undefined, marked(7n), 100, 1000), marked(8n), 900, 1000);
    expect(decideTakeover(marked(8n), seen, "b-1", 1000, 1100)).toEqual({ kind: "open", expected: 8n });
  });

  test("a stale read is no evidence of silence", () => {
    const seen = observed(observed(undefined, entry(8n), 100, 1000), entry(7n), 900, 1000);
    expect(seen).toEqual({ version: 8n, renewalId: "8/5/a-1", at: 100, changed: false });
    expect(decideTakeover(entry(7n), seen, "b-1", 1000, 1100)).toEqual({ kind: "held", waitMs: 1000 });
  });

  test("a store that times leases decides itself", () => {
    expect(decideTakeover({ ...entry(7n), expiresInMs: 3 }, undefined, "b-1", 1, 1e9)).toEqual({
      kind: "held",
      waitMs: 3,
    });
    expect(decideTakeover({ ...entry(7n), expiresInMs: 0 }, undefined, "b-1", 1, 0)).toEqual({
      kind: "open",
      expected: 7n,
    });
  });

  test("a store's clock that was set forward does not end a lease that I saw renewed", () => {
    const timed = (version: bigint, expiresInMs: number) => ({ ...entry(version), expiresInMs });
    const found = observed(undefined, timed(7n, 1000), 100, 1000);
    // Found so: only the store knows how old it is.
    expect(decideTakeover(timed(7n, 0), found, "b-1", 1000, 200).kind).toBe("open");
    const renewed = observed(found, timed(8n, 1000), 300, 1000);
    expect(decideTakeover(timed(8n, 0), renewed, "b-1", 1000, 1299)).toEqual({ kind: "held", waitMs: 1 });
    expect(decideTakeover(timed(8n, 0), renewed, "b-1", 1000, 1300).kind).toBe("open");
    // Set back, it does not keep a leader that I saw silent for a whole ttl.
    expect(decideTakeover(timed(8n, 700), renewed, "b-1", 1000, 1300)).toEqual({
      kind: "open",
      expected: 8n,
    });
    // A read that lags, and a store that lost its memory, show no renewal.
    expect(observed(renewed, timed(7n, 1000), 400, 1000)).toEqual(renewed);
    expect(observed(renewed, timed(7n, 1000), 9_000, 1000).changed).toBe(false);
  });

  test("a store that knows only how old a record is times the lease that the record names", () => {
    const aged = (ageMs: number) => ({ ...entry(7n), ageMs });
    const { ttlMs } = entry(7n).record;
    expect(decideTakeover(aged(ttlMs! - 1), undefined, "b-1", 5, 0)).toEqual({ kind: "held", waitMs: 1 });
    expect(decideTakeover(aged(ttlMs!), undefined, "b-1", 5, 0).kind).toBe("open");
    // Whoever cannot read the record counts with its own ttl.
    const unread = { version: 7n, record: decodeLease("garbage"), ageMs: 400 };
    expect(decideTakeover(unread, undefined, "b-1", 1000, 0)).toEqual({ kind: "held", waitMs: 600 });
    expect(decideTakeover({ ...aged(0), expiresInMs: 0 }, undefined, "b-1", 5, 0).kind).toBe("open");
  });

  test("what names me is taken over by a new write, not adopted", () => {
    expect(decideTakeover(entry(7n), undefined, "a-1", 1000, 0)).toEqual({ kind: "open", expected: 7n });
  });
});

describe("who leads?", () => {
  test("the token is the acquiring version, and stays through renewals", () => {
    expect(leaderFromRecord(entry(7n), undefined, 1000, 0)?.token).toBe(7n);
    expect(leaderFromRecord(entry(9n, { token: 7n }), undefined, 1000, 0)?.token).toBe(7n);
  });

  test("nobody, once its silence is long enough", () => {
    const seen = observed(undefined, entry(7n), 0, 1000);
    expect(leaderFromRecord(entry(7n), seen, 1000, 999)).not.toBeNull();
    expect(leaderFromRecord(entry(7n), seen, 1000, 1000)).toBeNull();
  });
});

describe("records others wrote", () => {
  test("round trip, exact beyond 2^53", () => {
    const original = record({ token: 2n ** 63n, value: 'ä\n"' });
    expect(decodeLease(encodeLease(original))).toEqual(original);
  });

  const deep = "[".repeat(20_000);
  test.each([
    ["", null],
    ["garbage", null],
    ["null", null],
    ["[]", null],
    ["7", null],
    [deep, null],
    ["x".repeat(70_000), null],
    ['{"v":2,"ttlMs":4000}', 4000],
    ['{"v":1,"ttlMs":1e12,"holder":7}', 86_400_000],
    ['{"v":1,"ttlMs":5000,"holder":"a","token":"1e9","since":1,"value":""}', 5000],
    [`{"v":1,"ttlMs":5000,"holder":"a","token":"${"9".repeat(21)}","since":1,"value":""}`, 5000],
    ['{"v":1,"ttlMs":5000,"holder":"a","token":7,"since":1,"value":""}', 5000],
    ['{"v":1,"ttlMs":-1,"holder":"a","token":null,"since":1,"value":""}', null],
    ['{"v":1,"ttlMs":5000,"holder":"","token":null,"since":1,"value":""}', 5000],
    ['{"__proto__":{"v":1},"ttlMs":5000,"holder":null}', 5000],
  ])("%.40s is held by someone unknown, never free", (text, ttlMs) => {
    const decoded = decodeLease(text);
    expect(decoded).toMatchObject({ holder: UNKNOWN_HOLDER, ttlMs });
    expect(decideTakeover({ version: 1n, record: decoded }, undefined, "b-1", 1000, 0).kind).toBe("held");
  });
});
