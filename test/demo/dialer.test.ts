/** The parts of the double dialer that need no process of their own. The whole is played by the example and on the page. */
import { describe, expect, it } from "vitest";
import { DAY_MS, nineOClock } from "../../src/demo/dialer/calendar.js";
import { Exchange } from "../../src/demo/dialer/exchange.js";
import { CUSTOMERS, sumsOf } from "../../src/demo/dialer/model.js";
import { CALL_HEADER, isOrders, isWord, parseCall } from "../../src/demo/dialer/wire.js";
import { StaleLeaderError, tokenFetch } from "../../src/fencing/index.js";

describe("nine o'clock", () => {
  const first = 1_000_000_123;
  const times = nineOClock(first);

  it("comes once a day, on the days after the first", () => {
    expect(times.next(0)).toBe(first + DAY_MS);
    expect(times.next(first)).toBe(first + DAY_MS);
    expect(times.next(first + DAY_MS - 1)).toBe(first + DAY_MS);
    expect(times.next(first + DAY_MS)).toBe(first + 2 * DAY_MS);
  });

  it("is found again by who has slept through it", () => {
    const fourth = first + 4 * DAY_MS;
    expect(times.latest(0, fourth, 9)).toEqual([1, 2, 3, 4].map((day) => first + day * DAY_MS));
    expect(times.latest(first + DAY_MS, fourth, 2)).toEqual([3, 4].map((day) => first + day * DAY_MS));
    expect(times.latest(0, first, 9)).toEqual([]);
  });
});

describe("the exchange", () => {
  it("connects once, refuses repeats and old tokens, and does what it is told on the plain line", async () => {
    const exchange = new Exchange();
    const url = await exchange.open();
    const begun: number[] = [];
    exchange.begins = ({ list }) => begun.push(list);
    const call = (customer: string | null, list = 1) => ({
      method: "POST",
      headers: { [CALL_HEADER]: JSON.stringify({ customer, list, by: "node1" }) },
    });
    const old = tokenFetch(7n);
    const young = tokenFetch(8n);
    try {
      await old(url, call(null));
      await old(url, call("Ada"));
      await young(url, call("Ada"));
      await young(url, call("Ada", 2));
      await expect(old(url, call("Bela"))).rejects.toBeInstanceOf(StaleLeaderError);
      for (const _ of [1, 2]) await fetch(`${url}plain`, call("Carl", 3));
      expect((await fetch(url, call("Dora"))).status).toBe(428);
      expect((await young(url, { method: "POST", headers: { [CALL_HEADER]: "{" } })).status).toBe(400);
      const elsewhere = new URL("/", url);
      expect((await young(elsewhere, call("Egon"))).status).toBe(404);
    } finally {
      await exchange.close();
    }
    expect(begun).toEqual([1]);
    expect(
      exchange.log.map(({ customer, list, token, outcome }) => [customer, list, token, outcome]),
    ).toEqual([
      ["Ada", 1, "7", "connected"],
      ["Ada", 1, "8", "repeat"],
      ["Ada", 2, "8", "connected"],
      ["Bela", 1, "7", "stale"],
      ["Carl", 3, null, "connected"],
      ["Carl", 3, null, "connected"],
    ]);
    const { length } = CUSTOMERS;
    expect(sumsOf(exchange.log, 1)).toEqual({ once: 1, more: 0, missed: length - 1, repeats: 1, stale: 1 });
    expect(sumsOf(exchange.log, 3)).toEqual({ once: 0, more: 1, missed: length - 1, repeats: 0, stale: 0 });
  });
});

describe("what is said", () => {
  it("is looked at before it is believed", () => {
    expect(isWord({ kind: "settled", list: 5 })).toBe(true);
    expect(isWord({ kind: "leads" })).toBe(true);
    for (const bad of [null, 5, {}, { kind: "settled" }, { kind: "settled", list: "5" }, { kind: "x" }])
      expect(isWord(bad)).toBe(false);
    const orders = { name: "a", directory: "b", exchange: "c", customers: ["d"], plain: 1, again: false };
    expect(isOrders(orders)).toBe(true);
    for (const key of Object.keys(orders)) expect(isOrders({ ...orders, [key]: undefined }), key).toBe(false);
    expect(isOrders({ ...orders, customers: [1] })).toBe(false);
    for (const bad of [undefined, "", "{", "null", "[]", `{"customer":1,"list":1,"by":"a"}`])
      expect(parseCall(bad)).toBeNull();
    expect(parseCall(`{"customer":null,"list":1,"by":"a"}`)).toEqual({ customer: null, list: 1, by: "a" });
  });
});
