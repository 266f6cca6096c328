import { describe, expect, it } from "vitest";
import { ExpiringMap } from "../../src/kit/expiring-map.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";

const HOUR = 3_600_000;

describe("what is known of each name", () => {
  it("is forgotten an hour after the last question, so that names without end do not fill the memory", async () => {
    const clock = new VirtualClock();
    const recent = new ExpiringMap<number>(clock);
    let most = 0;
    for (let i = 0; i < 20_000; i++) {
      recent.set(`order-${i}`, i);
      recent.get("scheduler"); // asked for throughout
      if (i === 0) recent.set("scheduler", -1);
      await clock.advance(HOUR / 2_000);
      most = Math.max(most, recent.size);
    }
    expect(recent.get("scheduler")).toBe(-1);
    expect(recent.get("order-19999")).toBe(19_999);
    expect(recent.get("order-0")).toBeUndefined();
    expect(most).toBeLessThan(6_000);
  });

  it("is kept while it is in use, and while all are asked for, however many they are", async () => {
    const clock = new VirtualClock();
    const recent = new ExpiringMap<{ open: boolean }>(clock, ({ open }) => open);
    recent.set("watched", { open: true });
    for (let i = 0; i < 5_000; i++) recent.set(`n${i}`, { open: false });
    await clock.advance(2 * HOUR);
    for (let i = 0; i < 5_000; i++) expect(recent.get(`n${i}`)).toBeDefined();
    for (let i = 0; i < 20_000; i++) recent.set(`m${i}`, { open: false });
    expect(recent.get("watched")).toEqual({ open: true });
    expect(recent.get("n4999")).toBeDefined();
  });
});

describe("names that nobody asks for", () => {
  /** How many are kept of 1,024 names, the last of which is set this long after the others. */
  async function keptAfter(ms: number, inUse: (value: number) => boolean = () => false): Promise<number> {
    const clock = new VirtualClock();
    const recent = new ExpiringMap<number>(clock, inUse);
    for (let i = 0; i < 1_023; i++) recent.set(`n${i}`, i);
    await clock.advance(ms);
    expect(recent.size).toBe(1_023); // nothing is looked at before there are this many
    recent.set("last", 1_023);
    return recent.size;
  }

  it("are kept for an hour, to the millisecond, and forgotten after it", async () => {
    expect(await keptAfter(HOUR)).toBe(1_024);
    expect(await keptAfter(HOUR + 1)).toBe(1);
  });

  it("are kept if they are in use, and only those", async () => {
    expect(await keptAfter(HOUR + 1, (value) => value % 2 === 0)).toBe(513);
  });

  it("are looked at again when there are twice as many, not at every new one", async () => {
    const clock = new VirtualClock();
    let looks = 0;
    const recent = new ExpiringMap<number>(clock, () => (looks++, true));
    for (let i = 0; i < 1_023; i++) recent.set(`n${i}`, i);
    await clock.advance(HOUR + 1);
    recent.set("a", 0);
    expect(looks).toBe(1_023);
    for (let i = 0; i < 1_023; i++) recent.set(`m${i}`, i);
    expect(looks).toBe(1_023);
    recent.set("b", 0);
    expect(looks).toBe(2 * 1_023);
  });

  it("can be asked for, listed, removed and cleared", () => {
    const recent = new ExpiringMap<number>(new VirtualClock());
    recent.set("a", 1);
    recent.set("b", 2);
    expect([...recent.values()]).toEqual([1, 2]);
    recent.delete("a");
    expect([recent.get("a"), recent.get("b"), recent.size]).toEqual([undefined, 2, 1]);
    recent.clear();
    expect(recent.size).toBe(0);
  });
});
