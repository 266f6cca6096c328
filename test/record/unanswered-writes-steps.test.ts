/** Taking back a write that nobody waits for: when it looks, what it takes for its own, and when it stops. */
import { beforeEach, describe, expect, it } from "vitest";
import { UnansweredWrites } from "../../src/record/unanswered-writes.js";
import { SetClock } from "../support/set-clock.js";
import { lease, OneRecord } from "./one-record.js";

const ATTEMPT_MS = 1_000;
const LOOK_MS = ATTEMPT_MS / 4;
const OURS = lease({ holder: "b-1", since: 9, value: "b" });

let clock: SetClock;
let store: OneRecord;
let retractions: UnansweredWrites;
let settled: boolean;

beforeEach(() => {
  clock = new SetClock();
  store = new OneRecord();
  retractions = new UnansweredWrites(clock, store);
  settled = false;
});

/** Our write on this version may be on its way. */
async function giveUp(expected: bigint | null): Promise<void> {
  retractions.undo({ key: "e", record: OURS, expected, attemptMs: ATTEMPT_MS });
  void retractions.settled().then(() => (settled = true));
  await clock.advance(0);
}

describe("a write that was given up", () => {
  it("is looked for while it may still arrive, and vacated with its token; then nothing more is asked", async () => {
    for (let i = 0; i < 3; i++) store.put(lease({ holder: null }));
    await giveUp(3n);
    expect([store.reads, store.writes, settled]).toEqual([1, 0, false]);
    await clock.advance(LOOK_MS - 1);
    expect(store.reads).toBe(1);
    store.put(OURS);
    await clock.advance(1);
    expect(store.written).toEqual([{ ...OURS, holder: null, value: "", token: 4n }]);
    expect([store.reads, settled, clock.timers]).toEqual([2, true, 0]);
  });

  it("that carries a token already keeps it", async () => {
    store.put(lease());
    store.put({ ...OURS, token: 1n });
    await giveUp(1n);
    expect(store.written).toEqual([{ ...OURS, holder: null, value: "", token: 1n }]);
  });

  it("is not looked for any more once someone wrote on the version it was to be written on", async () => {
    store.put(lease({ holder: null }));
    store.put(lease({ holder: "c-1" }));
    await giveUp(1n);
    expect([store.reads, store.writes, settled, clock.timers]).toEqual([1, 0, true, 0]);
  });

  it("on nothing: not while there is nothing, and no longer once there is something", async () => {
    await giveUp(null);
    expect(settled).toBe(false);
    store.put(lease({ holder: "c-1" }));
    await clock.advance(LOOK_MS);
    expect([store.reads, store.writes, settled]).toEqual([2, 0, true]);
  });

  it("is not a later record of the same candidate", async () => {
    store.put(lease({ holder: null }));
    store.put({ ...OURS, since: 10 });
    await giveUp(1n);
    expect([store.writes, settled]).toEqual([0, true]);
    expect(store.entry?.record.holder).toBe("b-1");
  });

  it("is vacated on a later version, if an edit moved it meanwhile", async () => {
    store.put(lease({ holder: null }));
    store.put(OURS);
    let edits = 1;
    store.beforeWrite = () => {
      if (edits-- > 0) store.put(OURS);
    };
    await giveUp(1n);
    expect([store.written, settled]).toEqual([[], false]);
    await clock.advance(LOOK_MS);
    expect(store.written).toEqual([{ ...OURS, holder: null, value: "", token: 3n }]);
    expect(settled).toBe(true);
  });

  it("is given up for good after one attempt's time, or if the store cannot be asked", async () => {
    store.put(lease({ holder: null }));
    await giveUp(1n);
    await clock.advance(ATTEMPT_MS - 1);
    expect(settled).toBe(false);
    await clock.advance(1);
    expect([settled, clock.timers]).toEqual([true, 0]);
    store.beforeRead = () => {
      throw new Error("away");
    };
    await giveUp(1n);
    expect([settled, clock.timers]).toEqual([true, 0]);
  });
});
