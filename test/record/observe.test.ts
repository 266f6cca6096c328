/** An observer of a record store: what it is shown, and when it looks. On a virtual clock. */
import { beforeEach, describe, expect, it } from "vitest";
import type { Backend, Leader } from "../../src/seam/backend.js";
import { lease, never, OneRecord, openOne } from "./one-record.js";
import { SetClock } from "../support/set-clock.js";

const RETRY_MS = 400;
const ATTEMPT_MS = 200;

let clock: SetClock;
let store: OneRecord;

beforeEach(() => {
  clock = new SetClock();
  store = new OneRecord();
});

const open = (): Backend => openOne(store, clock);

describe("an observer", () => {
  /** Follows in the background; the clock is the test's. */
  function follow(backend: Backend, pollMs = RETRY_MS): { seen: (Leader | null)[]; stop(): Promise<void> } {
    const controller = new AbortController();
    const seen: (Leader | null)[] = [];
    const options = { signal: controller.signal, pollMs, attemptMs: ATTEMPT_MS };
    const done = (async () => {
      for await (const leader of backend.observe("e", options)) seen.push(leader);
    })();
    return { seen, stop: () => (controller.abort(), done) };
  }

  const names = (seen: (Leader | null)[]): (string | undefined)[] => seen.map((leader) => leader?.candidate);

  it("is shown the present leader, then changes of candidate, token or value, and nothing twice", async () => {
    const { seen, stop } = follow(open());
    await clock.advance(0);
    const changes = [
      lease(),
      lease({ token: 1n }),
      lease({ token: 1n, value: "w" }),
      lease({ holder: "b-1", token: 1n, value: "w" }),
      lease({ holder: "b-1", token: 4n, value: "w" }),
      lease({ holder: null }),
      lease({ holder: null }),
    ];
    for (const change of changes) {
      store.put(change);
      await clock.advance(RETRY_MS);
    }
    await stop();
    expect(seen.map((leader) => leader && [leader.candidate, leader.token, leader.value])).toEqual([
      null,
      ["a-1", 1n, "v"],
      ["a-1", 1n, "w"],
      ["b-1", 1n, "w"],
      ["b-1", 4n, "w"],
      null,
    ]);
    expect(clock.timers).toBe(0);
  });

  it("calls a leader gone when its silence is long enough, not at the next poll after it", async () => {
    store.put(lease({ ttlMs: 300 }));
    const { seen, stop } = follow(open(), 60_000);
    await clock.advance(299);
    expect(names(seen)).toEqual(["a-1"]);
    await clock.advance(1);
    expect(names(seen)).toEqual(["a-1", undefined]);
    await stop();
  });

  it("polls at its own pace when nobody leads", async () => {
    store.put(lease({ holder: null }));
    const { stop } = follow(open());
    await clock.advance(RETRY_MS - 1);
    expect(store.reads).toBe(1);
    await clock.advance(1);
    expect(store.reads).toBe(2);
    await stop();
  });

  it("is not shown an older version than another observer of the same backend", async () => {
    const backend = open();
    store.put(lease());
    const old = store.entry;
    store.put(lease({ holder: "b-1" }));
    const first = follow(backend);
    await clock.advance(0);
    expect(names(first.seen)).toEqual(["b-1"]);
    store.entry = old;
    const second = follow(backend);
    await clock.advance(RETRY_MS);
    expect(names(first.seen)).toEqual(["b-1"]);
    expect(second.seen).toEqual([]);
    await Promise.all([first.stop(), second.stop()]);
  });

  it("rejects if the store cannot be asked, and ends without an error when it is stopped", async () => {
    store.beforeRead = () => {
      throw new Error("away");
    };
    const options = { signal: never, pollMs: RETRY_MS, attemptMs: ATTEMPT_MS };
    const failing = open().observe("e", options)[Symbol.asyncIterator]();
    await expect(failing.next()).rejects.toThrow("away");
    store.beforeRead = () => new Promise(() => {});
    const { stop, seen } = follow(open());
    await clock.advance(1);
    await stop();
    expect([seen, clock.timers]).toEqual([[], 0]);
  });
});
