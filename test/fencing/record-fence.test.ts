/** A fence in a record, call by call: what it writes, what it tries again, what it refuses to read. */
import { beforeEach, describe, expect, it } from "vitest";
import type { Entry, RecordStore } from "../../src/seam/table.js";
import { ConclaveError } from "../../src/kit/errors.js";
import { RecordFence } from "../../src/fencing/index.js";
import type { RecordFenceOptions } from "../../src/fencing/index.js";
import { VirtualClock } from "../../src/testing/index.js";

const LARGEST = 256 * 1024;

/** One record, and what is to go wrong with the next calls. */
class Record implements RecordStore {
  entry: Entry | null = null;
  readonly calls: string[] = [];
  beforeRead: () => void | Promise<void> = () => {};
  beforeWrite: () => void | Promise<void> = () => {};
  afterWrite: () => void | Promise<void> = () => {};

  async read(key: string): Promise<Entry | null> {
    this.calls.push(`read ${key}`);
    await this.beforeRead();
    return this.entry;
  }

  async write(key: string, expected: bigint | null, text: string): Promise<Entry | null> {
    this.calls.push(`write ${key}`);
    await this.beforeWrite();
    if ((this.entry?.version ?? null) !== expected) return null;
    const written = this.put(text);
    await this.afterWrite();
    return written;
  }

  put(text: string): Entry {
    this.entry = { version: (this.entry?.version ?? 0n) + 1n, record: text };
    return this.entry;
  }

  stored(): { v: number; token: string; ids: string[]; data: string | null } {
    return JSON.parse(this.entry!.record);
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

/** Timers fire at once, and are counted. */
class Impatient extends VirtualClock {
  readonly slept: number[] = [];
  draw = 1;

  override random(): number {
    return this.draw;
  }

  override after(delayMs: number, callback: () => void): { cancel(): void } {
    if (delayMs > 1_000) return super.after(delayMs, callback); // the bound of a call
    this.slept.push(delayMs);
    setImmediate(callback);
    return { cancel: () => {} };
  }
}

const passing = (): never => {
  throw new Error("away");
};
const lasting = (): never => {
  throw new ConclaveError("forbidden", "not for you");
};

let records: Record;
let clock: Impatient;

beforeEach(() => {
  records = new Record();
  clock = new Impatient();
});

const open = (over: Partial<RecordFenceOptions> = {}): RecordFence =>
  new RecordFence({ records, name: "ledger", clock, ...over });

describe("a check", () => {
  it("is a write every time, also of a token that is there already", async () => {
    const fence = open();
    await fence.check(5n);
    await fence.check(5n);
    const pair = ["read fence.ledger", "write fence.ledger"];
    expect(records.calls).toEqual([...pair, ...pair]);
    expect(records.stored()).toMatchObject({ v: 1, token: "5", data: null });
  });

  it("keeps the data that is there", async () => {
    const fence = open();
    await fence.write(5n, "kept");
    await fence.check(6n);
    expect(await fence.read()).toEqual({ token: 6n, data: "kept" });
  });

  it("is tried three times if the store cannot be asked, and no more", async () => {
    records.beforeRead = passing;
    await expect(open().check(5n)).rejects.toThrow("away");
    expect(records.calls).toHaveLength(3);
  });

  it("succeeds if one of the three tries does", async () => {
    let failures = 2;
    records.beforeRead = () => (failures-- > 0 ? passing() : undefined);
    await open().check(5n);
    expect(records.stored().token).toBe("5");
  });

  it("is not tried again if the store refuses it for good, or the caller has given up", async () => {
    records.beforeRead = lasting;
    await expect(open().check(5n)).rejects.toMatchObject({ code: "forbidden" });
    expect(records.calls).toHaveLength(1);
    const given = new AbortController();
    records.beforeRead = () => {
      given.abort(new Error("given up"));
      passing();
    };
    await expect(open().check(5n, { signal: given.signal })).rejects.toThrow("given up");
    expect(records.calls).toHaveLength(2);
  });
});

describe("a write", () => {
  it("returns what it wrote, and works on what was there", async () => {
    const fence = open();
    expect(await fence.write(5n, (data) => `${data}`)).toEqual({ token: 5n, data: "null" });
    expect(await fence.write(5n, (data) => `${data}!`)).toEqual({ token: 5n, data: "null!" });
  });

  it("refuses an older token, and what is not a token, without writing", async () => {
    const fence = open();
    await fence.write(5n, "new");
    await expect(fence.write(4n, "old")).rejects.toMatchObject({ token: 4n, highest: 5n });
    await expect(fence.write(-1n, "none")).rejects.toMatchObject({ code: "invalid" });
    expect(records.calls).toHaveLength(3);
    expect(records.stored().data).toBe("new");
  });

  it("names its last eight writers, so that one whose answer was lost finds itself", async () => {
    const fence = open();
    for (let i = 0; i < 10; i++) await fence.write(5n, String(i));
    expect(new Set(records.stored().ids).size).toBe(8);
    records.afterWrite = passing;
    expect(await fence.write(5n, "there")).toEqual({ token: 5n, data: "there" });
    expect(records.stored().ids).toHaveLength(8);
  });

  it("does not know whether it was done if it cannot find itself, or cannot look", async () => {
    const fence = open();
    await fence.write(5n, "before");
    records.beforeWrite = passing;
    await expect(fence.write(5n, "after")).rejects.toThrow("away");
    records.beforeWrite = () => {
      records.beforeRead = () => {
        throw new Error("away from reading, too");
      };
      passing();
    };
    await expect(fence.write(5n, "after")).rejects.toThrow(/^away$/);
  });

  it("does not look for itself after a refusal", async () => {
    records.beforeWrite = lasting;
    await expect(open().write(5n, "x")).rejects.toMatchObject({ code: "forbidden" });
    expect(records.calls).toEqual(["read fence.ledger", "write fence.ledger"]);
  });

  it("follows others at once, then ever later, and gives up after a thousand lost races", async () => {
    const fence = open();
    records.beforeWrite = () => void records.put('{"v":1,"token":"1","ids":[],"data":null}');
    await expect(fence.write(5n, "x")).rejects.toMatchObject({ code: "unavailable", retriable: true });
    expect(records.calls).toHaveLength(2_000);
    expect(clock.slept.slice(0, 3)).toEqual([2, 4, 6]);
    expect([clock.slept.length, clock.slept.at(-1)]).toEqual([999, 50]);
  });

  it("is bounded by attemptMs, five seconds by default", async () => {
    records.beforeRead = () => new Promise(() => {});
    const errors: unknown[] = [];
    open()
      .write(5n, "x")
      .catch((error: unknown) => errors.push(error));
    open({ attemptMs: 2_000 })
      .read()
      .catch((error: unknown) => errors.push(error));
    await clock.advance(1_999);
    expect(errors).toEqual([]);
    await clock.advance(1);
    expect(errors).toHaveLength(1);
    await clock.advance(2_999);
    expect(errors).toHaveLength(1);
    await clock.advance(1);
    expect(errors).toMatchObject([{ code: "timeout" }, { code: "timeout" }]);
    expect(errors).toMatchObject([{ message: expect.stringContaining('reading record "fence.ledger"') }, {}]);
  });

  it("takes up to 256 KiB of text, and refuses what nobody could read again", async () => {
    const fence = open();
    await fence.write(5n, "");
    const text = records.entry!.record;
    const room = LARGEST - text.length - `"${records.stored().ids[0]}",`.length;
    await fence.write(5n, "x".repeat(room));
    expect(records.entry!.record).toHaveLength(LARGEST);
    expect((await fence.read())?.data).toHaveLength(room);
    const other = new Record();
    const second = new RecordFence({ records: other, name: "ledger", clock });
    await second.write(5n, "");
    await expect(second.write(5n, "x".repeat(room + 1))).rejects.toMatchObject({ code: "invalid" });
    expect((await second.read())?.data).toBe("");
  });
});

describe("a record that is not a fence", () => {
  const good = { v: 1, token: "5", ids: ["a"], data: "x" };

  it("is told from one that is", async () => {
    records.put(JSON.stringify(good));
    expect(await open().read()).toEqual({ token: 5n, data: "x" });
    expect(await new RecordFence({ records: new Record(), name: "none", clock }).read()).toBeNull();
  });

  it.each([
    "",
    "{",
    "null",
    "7",
    '"text"',
    "[]",
    ...[
      { ...good, v: 2 },
      { ...good, token: 5 },
      { ...good, token: "5x" },
      { ...good, data: 7 },
      { ...good, data: undefined },
      { ...good, ids: undefined },
      { ...good, ids: "abc" },
      { ...good, ids: ["a", 7] },
    ].map((each) => JSON.stringify(each)),
    JSON.stringify({ ...good, data: "x".repeat(LARGEST) }),
  ])("stops every call, and is left alone: %.60s", async (text) => {
    records.put(text);
    const fence = open();
    for (const call of [fence.read(), fence.check(9n), fence.write(9n, "y")])
      await expect(call).rejects.toMatchObject({ code: "conflict", retriable: false });
    expect(records.entry?.record).toBe(text);
    expect(records.calls.some((call) => call.startsWith("write"))).toBe(false);
  });
});

describe("the record of a fence", () => {
  it("is called after the resource, or as the key says; either is checked", async () => {
    await open({ key: "elsewhere" }).check(5n);
    expect(records.calls[0]).toBe("read elsewhere");
    expect(() => open({ name: "a\nb" })).toThrow(/control character/);
    expect(() => open({ key: "" })).toThrow(/empty/);
  });

  it("is bound to a term: acts under its token, and not at all once it is over", async () => {
    let held = true;
    const assertHeld = (): void => {
      if (!held) throw new Error("over");
    };
    const { signal } = new AbortController();
    const acts = open().bind({ token: 5n, signal, assertHeld });
    await acts.check();
    expect(await acts.write("x")).toEqual({ token: 5n, data: "x" });
    held = false;
    await expect(acts.check()).rejects.toThrow("over");
    await expect(acts.write("y")).rejects.toThrow("over");
    expect(records.calls).toHaveLength(4);
  });
});

describe("a check whose signal has aborted", () => {
  it("asks the store nothing more, even if the reason could pass", async () => {
    const record = new Record();
    const stop = new AbortController();
    const reason = new ConclaveError("timeout", "no time");
    record.beforeWrite = () => {
      stop.abort(reason);
      throw new ConclaveError("unavailable", "away");
    };
    const fence = new RecordFence({ records: record, name: "r", clock: new VirtualClock() });
    await expect(fence.check(5n, { signal: stop.signal })).rejects.toBe(reason);
    await new Promise((resolve) => void setImmediate(resolve));
    expect(record.calls.filter((call) => call.startsWith("read"))).toHaveLength(1);
  });
});
