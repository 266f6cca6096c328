/** A campaign over a record store: when it looks, what it writes, what it waits for. On a virtual clock. */
import { beforeEach, describe, expect, it } from "vitest";
import type { Backend, Candidacy, Hold } from "../../src/seam/backend.js";
import type { Entry } from "../../src/seam/table.js";
import type { LeaseRecord } from "../../src/record/lease.js";
import type { RecordBackendOptions } from "../../src/record/backend-options.js";
import { TableServer } from "../support/table.js";
import { lease, never, OneRecord, openOne } from "./one-record.js";
import { SetClock } from "../support/set-clock.js";

const TTL_MS = 1_000;
const RETRY_MS = 400;
const ATTEMPT_MS = 200;

let clock: SetClock;
let store: OneRecord;

beforeEach(() => {
  clock = new SetClock();
  store = new OneRecord();
});

const open = (over: Partial<RecordBackendOptions> = {}): Backend => openOne(store, clock, over);

function candidacy(over: Partial<Candidacy> = {}): Candidacy {
  const durations = { ttlMs: TTL_MS, retryMs: RETRY_MS, attemptMs: ATTEMPT_MS };
  return { election: "e", candidate: "b-1", value: "b", ...durations, ...over };
}

interface Campaign {
  hold: Hold | null | undefined;
  error: unknown;
}

function campaign(backend: Backend, { wait = true, signal = never } = {}, over = {}): Campaign {
  const state: Campaign = { hold: undefined, error: undefined };
  backend.campaign(candidacy(over), { wait, signal }).then(
    (hold) => (state.hold = hold),
    (error: unknown) => (state.error = error),
  );
  return state;
}

describe("a campaign", () => {
  it("writes who leads, for how long, with what value, since when; its version is the token", async () => {
    const hold = await open().campaign(candidacy(), { wait: false, signal: never });
    expect(store.entry?.record).toEqual({
      holder: "b-1",
      ttlMs: TTL_MS,
      value: "b",
      since: clock.wall(),
      token: null,
    });
    expect(hold).toMatchObject({ token: store.entry?.version, ttlMs: TTL_MS });
  });

  it("counts from the clocks before its write", async () => {
    await clock.advance(50);
    store.beforeWrite = () => clock.stall(30);
    const hold = await open().campaign(candidacy(), { wait: false, signal: never });
    expect(hold?.asked).toMatchObject({ now: 50 });
  });

  it("names a later begin than its own last one, whatever the wall clock says", async () => {
    const backend = open();
    const begin = async (): Promise<number> => {
      const hold = await backend.campaign(candidacy(), { wait: false, signal: never });
      const { since } = store.entry!.record;
      await hold!.release({ signal: never });
      return since;
    };
    const first = await begin();
    expect(await begin()).toBe(first + 1);
    clock.jumpWall(-60_000);
    expect(await begin()).toBe(first + 2);
    clock.jumpWall(120_000);
    expect(await begin()).toBe(clock.wall());
  });

  it("that does not wait looks once, and follows lost races a few times", async () => {
    store.put(lease());
    const held = campaign(open(), { wait: false });
    await clock.advance(0);
    expect([held.hold, store.reads, store.writes]).toEqual([null, 1, 0]);
    store.put(lease({ holder: null }));
    store.beforeWrite = () => void store.put(lease({ holder: null }));
    const raced = campaign(open(), { wait: false });
    await clock.advance(0);
    expect([raced.hold, store.writes]).toEqual([null, 4]);
  });

  it("looks again at once after the first lost race, then ever later", async () => {
    clock.draw = 1;
    store.put(lease({ holder: null }));
    store.beforeWrite = () => void store.put(lease({ holder: null }));
    campaign(open());
    await clock.advance(0);
    expect(store.writes).toBe(2);
    await clock.advance(19);
    expect(store.writes).toBe(2);
    await clock.advance(1);
    expect(store.writes).toBe(3);
    await clock.advance(39);
    expect(store.writes).toBe(3);
    await clock.advance(1);
    expect(store.writes).toBe(4);
  });

  it("waits for the silence of the holder, and not longer, where polls are rarer", async () => {
    store.put(lease({ ttlMs: 300 }));
    const waiting = campaign(open());
    await clock.advance(299);
    expect([waiting.hold, store.reads]).toEqual([undefined, 1]);
    await clock.advance(1);
    expect(waiting.hold).toMatchObject({ token: 2n });
    expect(store.reads).toBe(2);
  });

  it.each([
    [0, undefined, RETRY_MS],
    [1, undefined, RETRY_MS * 1.25],
    [1, 0, RETRY_MS],
    [1, 1, RETRY_MS * 2],
  ])("polls after retryMs and its jitter: draw %d, jitter %s", async (draw, pollJitter, expected) => {
    clock.draw = draw;
    store.put(lease({ ttlMs: 60_000 }));
    campaign(open(pollJitter === undefined ? {} : { pollJitter }));
    await clock.advance(expected - 1);
    expect(store.reads).toBe(1);
    await clock.advance(1);
    expect(store.reads).toBe(2);
  });

  it("goes on counting the silence through failed calls", async () => {
    store.put(lease());
    const backend = open();
    const first = campaign(backend);
    await clock.advance(RETRY_MS - 1);
    store.beforeRead = () => {
      throw new Error("away");
    };
    await clock.advance(1);
    expect(first.error).toMatchObject({ message: "away" });
    store.beforeRead = () => {};
    await clock.advance(TTL_MS - RETRY_MS);
    expect((await backend.campaign(candidacy(), { wait: false, signal: never }))?.token).toBe(2n);
  });

  it("gives up with its signal, without another look", async () => {
    store.put(lease({ ttlMs: 60_000 }));
    const controller = new AbortController();
    const waiting = campaign(open(), { signal: controller.signal });
    await clock.advance(10);
    controller.abort(new Error("changed its mind"));
    await clock.advance(0);
    expect(waiting.error).toMatchObject({ message: "changed its mind" });
    expect([store.reads, clock.timers]).toEqual([1, 0]);
  });

  it("bounds each call by attemptMs and says which one was not answered", async () => {
    store.beforeRead = () => new Promise(() => {});
    const reading = campaign(open());
    await clock.advance(ATTEMPT_MS);
    expect(reading.error).toMatchObject({
      code: "timeout",
      message: expect.stringContaining('reading election "e"'),
    });
    store.beforeRead = () => {};
    store.beforeWrite = () => new Promise(() => {});
    const writing = campaign(open());
    await clock.advance(ATTEMPT_MS);
    expect(writing.error).toMatchObject({
      code: "timeout",
      message: expect.stringContaining('election "e"'),
    });
  });

  it("takes nothing back that was certainly not written", async () => {
    store.beforeWrite = async () => {
      throw Object.assign(new Error("too long"), { [Symbol.for("conclave.error")]: true, code: "invalid" });
    };
    const refused = campaign(open(), { wait: false });
    await clock.advance(0);
    expect(refused.error).toMatchObject({ message: "too long" });
    await clock.advance(ATTEMPT_MS);
    expect([store.reads, clock.timers]).toEqual([1, 0]);
  });
});

describe("a store that knows of deaths", () => {
  let dead: boolean;
  let asked: [string, bigint][];

  beforeEach(() => {
    dead = false;
    asked = [];
    store.put(lease({ ttlMs: 60_000 }));
    Object.assign(store, {
      abandoned: async (key: string, version: bigint) => {
        asked.push([key, version]);
        return dead;
      },
    });
  });

  it("is asked before the silence is waited for", async () => {
    dead = true;
    expect((await open().campaign(candidacy(), { wait: false, signal: never }))?.token).toBe(2n);
    expect(asked).toEqual([["e", 1n]]);
  });

  it("is asked every 200 ms while the campaign waits", async () => {
    const waiting = campaign(open());
    await clock.advance(199);
    expect(asked).toHaveLength(1);
    dead = true;
    await clock.advance(1);
    expect(waiting.hold).toMatchObject({ token: 2n });
  });

  it("that cannot tell has not said that anybody is dead", async () => {
    Object.assign(store, { abandoned: () => Promise.reject(new Error("away")) });
    expect(await open().campaign(candidacy(), { wait: false, signal: never })).toBeNull();
    Object.assign(store, { abandoned: () => new Promise(() => {}) });
    const hanging = campaign(open(), { wait: false });
    await clock.advance(ATTEMPT_MS);
    expect(hanging.hold).toBeNull();
  });
});

describe("a store that wakes its campaigns", () => {
  let wake: () => void;

  beforeEach(() => {
    store.put(lease({ ttlMs: 60_000 }));
    Object.assign(store, {
      watch: (_key: string, woken: () => void) => {
        wake = woken;
        return new Promise<void>(() => {});
      },
    });
  });

  it("has them look at once", async () => {
    const waiting = campaign(open());
    await clock.advance(5);
    store.put(lease({ holder: null }));
    wake();
    await clock.advance(0);
    expect(waiting.hold).toMatchObject({ token: 3n });
  });

  it("has them look after a random part of wakeJitterMs, so that not all write at once", async () => {
    clock.draw = 0.5;
    const waiting = campaign(open({ wakeJitterMs: 100 }));
    await clock.advance(5);
    store.put(lease({ holder: null }));
    wake();
    await clock.advance(49);
    expect(waiting.hold).toBeUndefined();
    await clock.advance(1);
    expect(waiting.hold).toMatchObject({ token: 3n });
  });
});

describe("closing", () => {
  it("closes both stores, once each", async () => {
    const records = { ...new TableServer().texts("records") };
    let closed = 0;
    records[Symbol.asyncDispose] = async () => void closed++;
    const backend = open({ records });
    await backend[Symbol.asyncDispose]();
    expect([store.closed, closed]).toEqual([1, 1]);
  });
});

describe("a wake that brings the new version", () => {
  type Wake = (entry?: Entry<LeaseRecord>) => void;
  let wake: Wake;
  const watched = (): Backend => {
    const watch = (_key: string, woken: Wake): Promise<void> => {
      wake = woken;
      return new Promise(() => {});
    };
    return openOne(Object.assign(store, { watch }), clock);
  };

  it("saves the read when nobody leads any more", async () => {
    store.put(lease({ ttlMs: 10_000 }));
    const waiting = campaign(watched());
    await clock.advance(0);
    expect(store.reads).toBe(1);
    wake(store.put(lease({ holder: null })));
    await clock.advance(0);
    expect([waiting.hold?.token, store.reads, store.writes]).toEqual([3n, 1, 1]);
  });

  it("is not believed: a version that is not the newest costs one refused write, then a read", async () => {
    store.put(lease({ ttlMs: 10_000 }));
    const met: bigint[] = [];
    const options = { wait: true, signal: never, seen: (token: bigint) => void met.push(token) };
    void watched().campaign(candidacy(), options);
    await clock.advance(0);
    wake({ version: 999_999n, record: lease({ holder: null }) });
    await clock.advance(0);
    expect([store.reads, store.writes, store.written, met]).toEqual([2, 1, [], [2n, 2n]]);
  });

  it("about a leader is a reason to read, like any other", async () => {
    store.put(lease({ ttlMs: 10_000 }));
    campaign(watched());
    await clock.advance(0);
    wake(store.put(lease({ holder: "c-1", ttlMs: 10_000 })));
    await clock.advance(0);
    expect([store.reads, store.writes]).toEqual([2, 0]);
  });
});
