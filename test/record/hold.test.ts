/** A held record: what renewing, proclaiming and releasing write, and when the hold says that it is lost. */
import { beforeEach, describe, expect, it } from "vitest";
import { readClocks } from "../../src/kit/clock.js";
import { ConclaveError } from "../../src/kit/errors.js";
import { RecordHold } from "../../src/record/hold.js";
import type { LeaseRecord } from "../../src/record/lease.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";
import { lease, never, OneRecord } from "./one-record.js";

const call = { signal: never };
const cut = (): never => {
  throw new Error("cut off");
};

let clock: VirtualClock;
let store: OneRecord;

beforeEach(() => {
  clock = new VirtualClock();
  store = new OneRecord();
});

/** What a campaign leaves behind: the acquiring write, at this version. */
function hold(over: Partial<LeaseRecord> = {}): RecordHold {
  const record = { ...lease(over), holder: "a-1", ttlMs: 1_000 };
  const { version } = store.put(record);
  return new RecordHold(clock, store, { key: "e", record, version, asked: readClocks(clock) });
}

describe("a held record", () => {
  it("has the acquiring version for its token, and writes it into every renewal", async () => {
    store.put(lease({ holder: null }));
    const held = hold();
    expect([held.token, held.ttlMs]).toEqual([2n, 1_000]);
    await held.renew(call);
    await held.renew(call);
    expect(store.written).toEqual([lease({ token: 2n }), lease({ token: 2n })]);
  });

  it("answers with the clocks from before the question", async () => {
    const held = hold();
    await clock.advance(70);
    store.beforeWrite = () => clock.advance(30);
    expect(await held.renew(call)).toEqual({ asked: readClocks(new At(clock, 70)) });
  });

  it("proclaims by a renewal that carries the value, which later renewals keep", async () => {
    const held = hold();
    expect(await held.proclaim("new", call)).not.toBe("lost");
    await held.renew(call);
    expect(store.written.map(({ value }) => value)).toEqual(["new", "new"]);
  });

  it("publishes a value whose answer was lost with the next renewal", async () => {
    const held = hold();
    store.beforeWrite = cut;
    await expect(held.proclaim("new", call)).rejects.toThrow("cut off");
    store.beforeWrite = () => {};
    await held.renew(call);
    expect(store.entry?.record.value).toBe("new");
  });

  it("goes back to the old value if the store refuses the new one for good", async () => {
    const held = hold();
    store.beforeWrite = () => {
      throw new ConclaveError("invalid", "too long");
    };
    await expect(held.proclaim("new", call)).rejects.toThrow("too long");
    store.beforeWrite = () => {};
    await held.renew(call);
    expect(store.entry?.record.value).toBe("v");
  });

  it("is released by a vacant record without its value; afterwards nothing is renewed", async () => {
    const held = hold();
    await held.release(call);
    expect(store.entry?.record).toEqual(lease({ holder: null, value: "", token: 1n }));
    expect(await held.renew(call)).toBe("lost");
    expect(await held.proclaim("new", call)).toBe("lost");
    expect(store.writes).toBe(1);
  });

  it("renews nothing from the moment its release was asked for", async () => {
    const held = hold();
    const [, renewed] = await Promise.all([held.release(call), held.renew(call)]);
    expect(renewed).toBe("lost");
    expect(store.entry?.record.holder).toBeNull();
  });

  it("sends one write at a time: two at once would refuse each other", async () => {
    const held = hold();
    let under = 0;
    let most = 0;
    store.beforeWrite = async () => {
      most = Math.max(most, ++under);
      await new Promise((resolve) => setImmediate(resolve));
      under--;
    };
    const answers = await Promise.all([held.renew(call), held.proclaim("new", call), held.renew(call)]);
    expect(answers.every((answer) => answer !== "lost")).toBe(true);
    expect([most, store.reads]).toEqual([1, 0]);
  });

  it("goes on after a call that failed", async () => {
    const held = hold();
    store.beforeWrite = cut;
    await expect(held.renew(call)).rejects.toThrow("cut off");
    store.beforeWrite = () => {};
    expect(await held.renew(call)).not.toBe("lost");
  });
});

describe("a record that moved under its holder", () => {
  it.each([
    ["the token of its term", { token: 1n }],
    ["the acquiring write itself", { token: null }],
  ])("is followed while it is still ours: %s", async (_, over) => {
    const held = hold();
    store.put(lease(over)); // somebody edited a label
    expect(await held.renew(call)).not.toBe("lost");
    expect([store.reads, store.writes]).toEqual([1, 2]);
    expect(store.entry?.record.token).toBe(1n);
  });

  it.each([
    ["somebody else's", { holder: "b-1" }],
    ["nobody's", { holder: null, token: 1n }],
    ["our own next term's", { token: 2n }],
    ["our own next acquiring write", { token: null, since: 6 }],
  ])("is lost if it is %s", async (_, over) => {
    const held = hold();
    store.put(lease(over));
    expect(await held.renew(call)).toBe("lost");
    expect(store.writes).toBe(1);
  });

  it("is lost if it is gone, but not while a write of ours may still arrive", async () => {
    const held = hold();
    store.entry = null;
    expect(await held.renew(call)).toBe("lost");
    const other = hold();
    store.beforeWrite = cut;
    await expect(other.renew(call)).rejects.toThrow("cut off");
    store.beforeWrite = () => {};
    store.entry = null;
    await expect(other.renew(call)).rejects.toMatchObject({ code: "unavailable" });
  });

  it("is not lost by a stale read, however often it comes", async () => {
    store.put(lease({ holder: "old" }));
    const held = hold();
    const ours = store.entry;
    store.put(lease({ token: 2n }));
    const stale = { version: 1n, record: lease({ holder: "old" }) };
    store.beforeRead = () => void (store.entry = stale);
    await expect(held.renew(call)).rejects.toMatchObject({ code: "unavailable" });
    store.beforeRead = () => void (store.entry = { ...stale, version: 2n });
    store.entry = ours && { ...ours, version: 3n };
    await expect(held.renew(call)).rejects.toMatchObject({ code: "unavailable" });
  });

  it("is not chased without end: after four writes its state is unknown", async () => {
    const held = hold();
    store.beforeWrite = () => void store.put(lease({ token: 1n }));
    await expect(held.renew(call)).rejects.toMatchObject({ code: "unavailable", retriable: true });
    expect(store.writes).toBe(4);
  });

  it("is not written to after the call was given up", async () => {
    const held = hold();
    const given = new AbortController();
    store.beforeWrite = () => void store.put(lease({ token: 1n }));
    store.beforeRead = () => given.abort(new Error("given up"));
    await expect(held.renew({ signal: given.signal })).rejects.toThrow("given up");
    expect(store.writes).toBe(1);
    await expect(held.renew({ signal: given.signal })).rejects.toThrow("given up");
    expect(store.writes).toBe(1);
  });
});

/** A clock as it was at an earlier instant. */
class At extends VirtualClock {
  constructor(clock: VirtualClock, now: number) {
    super({ wallMs: clock.wall() - clock.now() });
    this.stall(now);
  }
}
