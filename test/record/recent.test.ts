import { describe, expect, it } from "vitest";
import { Recent } from "../../src/record/recent.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";

const HOUR = 3_600_000;

describe("what is known of each name", () => {
  it("is forgotten an hour after the last question, so that names without end do not fill the memory", async () => {
    const clock = new VirtualClock();
    const recent = new Recent<number>(clock);
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
    const recent = new Recent<{ open: boolean }>(clock, ({ open }) => open);
    recent.set("watched", { open: true });
    for (let i = 0; i < 5_000; i++) recent.set(`n${i}`, { open: false });
    await clock.advance(2 * HOUR);
    for (let i = 0; i < 5_000; i++) expect(recent.get(`n${i}`)).toBeDefined();
    for (let i = 0; i < 20_000; i++) recent.set(`m${i}`, { open: false });
    expect(recent.get("watched")).toEqual({ open: true });
    expect(recent.get("n4999")).toBeDefined();
  });
});
