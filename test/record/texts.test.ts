/** Lease records as texts: field by field, at the bounds, and through a store of texts. */
import { describe, expect, it } from "vitest";
import type { Entry, RecordStore } from "../../src/seam/table.js";
import { decodeLease, encodeLease, LARGEST_TEXT, textLeases } from "../../src/record/codec.js";
import { unreadable } from "../../src/record/lease.js";
import { checkedLeases } from "../../src/record/checked-leases.js";
import { lease, never } from "./one-record.js";

const DAY_MS = 86_400_000;
const sound = { v: 1, ttlMs: 5_000, holder: "a-1", token: "7", since: 1, value: "x" };
const read = (over: object): unknown => decodeLease(JSON.stringify({ ...sound, ...over }));

describe("a lease as text", () => {
  it("is read if every field is right", () => {
    expect(read({})).toEqual({ holder: "a-1", ttlMs: 5_000, token: 7n, since: 1, value: "x" });
    expect(read({ holder: null, token: null })).toMatchObject({ holder: null, token: null });
    expect(read({ more: "is ignored" })).toMatchObject({ holder: "a-1" });
  });

  it.each([
    { v: undefined },
    { v: 2 },
    { v: "1" },
    { holder: undefined },
    { holder: 7 },
    { holder: "" },
    { holder: true },
    { value: undefined },
    { value: 7 },
    { value: null },
    { since: undefined },
    { since: "1" },
    { since: null },
    { token: undefined },
    { token: 7 },
    { token: "" },
    { token: "-1" },
    { token: "7x" },
    { token: "x7" },
    { token: "7\n" },
    { token: "9".repeat(21) },
  ])("is unreadable, for the ttl it names, with %j", (over) => {
    expect(read(over)).toEqual(unreadable(5_000));
  });

  it.each(["[]", "null", '"text"', "7", "{", "", "true"])(
    "is unreadable, for an unknown time: %s",
    (text) => {
      expect(decodeLease(text)).toEqual(unreadable());
    },
  );

  it.each([{ ttlMs: undefined }, { ttlMs: 0 }, { ttlMs: -1 }, { ttlMs: "5000" }, { ttlMs: null }])(
    "is unreadable, for an unknown time, with %j",
    (over) => {
      expect(read(over)).toEqual(unreadable());
    },
  );

  it.each([
    [1, 100],
    [99, 100],
    [100, 100],
    [101, 101],
    [DAY_MS, DAY_MS],
    [DAY_MS + 1, DAY_MS],
  ])("claims a ttl within bounds: %d is taken for %d", (claimed, taken) => {
    expect(read({ ttlMs: claimed })).toMatchObject({ ttlMs: taken, holder: "a-1" });
  });

  it("has tokens of up to twenty digits, exactly", () => {
    expect(read({ token: "9".repeat(20) })).toMatchObject({ token: 10n ** 20n - 1n });
    expect(read({ token: "0" })).toMatchObject({ token: 0n });
  });

  it("is written and read up to the largest size, and neither beyond it", () => {
    const empty = encodeLease(lease({ value: "" })).length;
    const largest = lease({ value: "x".repeat(LARGEST_TEXT - empty) });
    const text = encodeLease(largest);
    expect(text).toHaveLength(LARGEST_TEXT);
    expect(decodeLease(text)).toEqual(largest);
    const larger = { ...largest, value: `${largest.value}x` };
    expect(() => encodeLease(larger)).toThrow(`${LARGEST_TEXT + 1} characters long`);
    expect(decodeLease(text.replace('"x', '"xx'))).toEqual(unreadable());
  });

  it("begins with what readers of another version need", () => {
    expect(encodeLease(lease({ token: 7n }))).toBe(
      '{"v":1,"ttlMs":1000,"holder":"a-1","token":"7","since":5,"value":"v"}',
    );
  });
});

describe("leases over a store of texts", () => {
  /** A store that needs its `this`, and tells what it was asked. */
  class Texts implements RecordStore {
    readonly calls: unknown[] = [];
    next: Entry | null = null;

    async read(key: string): Promise<Entry | null> {
      this.calls.push(["read", key]);
      return this.next;
    }

    async write(key: string, expected: bigint | null, record: string): Promise<Entry | null> {
      this.calls.push(["write", key, expected, record]);
      return this.next;
    }

    async watch(key: string, wake: () => void): Promise<void> {
      this.calls.push(["watch", key]);
      wake();
    }

    async abandoned(key: string, version: bigint): Promise<boolean> {
      this.calls.push(["abandoned", key, version]);
      return true;
    }

    async [Symbol.asyncDispose](): Promise<void> {
      this.calls.push(["closed"]);
    }
  }

  const call = { signal: never };
  const text = encodeLease(lease());

  it.each([
    ["texts", textLeases],
    ["checked texts", (store: RecordStore) => checkedLeases(textLeases(store))],
  ])("pass every call on: %s", async (_, wrap) => {
    const store = new Texts();
    const leases = wrap(store);
    expect(await leases.read("e", call)).toBeNull();
    expect(await leases.write("e", null, lease(), call)).toBeNull();
    store.next = { version: 7n, record: text, renewalId: "m", expiresInMs: 3 };
    const entry = { version: 7n, record: lease(), renewalId: "m", expiresInMs: 3 };
    expect(await leases.read("e", call)).toEqual(entry);
    expect(await leases.write("e", 6n, lease(), call)).toEqual(entry);
    let woken = 0;
    await leases.watch?.("e", () => void woken++, call);
    expect(await leases.abandoned?.("e", 7n, call)).toBe(true);
    await leases[Symbol.asyncDispose]();
    expect(woken).toBe(1);
    expect(store.calls).toEqual([
      ["read", "e"],
      ["write", "e", null, text],
      ["read", "e"],
      ["write", "e", 6n, text],
      ["watch", "e"],
      ["abandoned", "e", 7n],
      ["closed"],
    ]);
  });

  it("have neither watch nor deaths where the store has none", () => {
    const { read, write, [Symbol.asyncDispose]: close } = new Texts();
    const leases = checkedLeases(textLeases({ read, write, [Symbol.asyncDispose]: close }));
    expect(["watch" in leases, "abandoned" in leases]).toEqual([false, false]);
  });
});
