/** A vacancy that is left to somebody: by the leader before, to its heir; by a candidate of a lower priority, to others. */
import { beforeEach, describe, expect, it } from "vitest";
import { LONGEST_HEIR_MS } from "../../src/kit/heir.js";
import { decodeLease, encodeLease } from "../../src/record/codec.js";
import type { RecordBackendOptions } from "../../src/record/backend-options.js";
import type { Backend, Candidacy, Hold } from "../../src/seam/backend.js";
import { SetClock } from "../support/set-clock.js";
import { lease, never, OneRecord, openOne } from "./one-record.js";

const TTL_MS = 1_000;
const RETRY_MS = 400;

let clock: SetClock;
let store: OneRecord;

beforeEach(() => {
  clock = new SetClock();
  store = new OneRecord();
});

const open = (over: Partial<RecordBackendOptions> = {}): Backend => openOne(store, clock, over);
const left = (candidate: string, forMs = 5_000) => lease({ holder: null, heir: { candidate, forMs } });

function candidacy(over: Partial<Candidacy> = {}): Candidacy {
  return {
    ...{ election: "e", candidate: "b-1", value: "b", ttlMs: TTL_MS, retryMs: RETRY_MS, attemptMs: 200 },
    ...over,
  };
}

function campaign(backend: Backend, over: Partial<Candidacy> = {}, wait = true): { hold?: Hold | null } {
  const state: { hold?: Hold | null } = {};
  void backend.campaign(candidacy(over), { wait, signal: never }).then((hold) => (state.hold = hold));
  return state;
}

describe("an heir", () => {
  it.each(["b-1", "b"])("named as %s takes the lease at once", async (heir) => {
    store.put(left(heir));
    const mine = campaign(open());
    await clock.advance(0);
    expect(mine.hold).toMatchObject({ token: 2n });
  });

  it("is waited for, by others' own clocks from when they see the vacancy", async () => {
    store.put(left("c"));
    const mine = campaign(open());
    await clock.advance(4_999);
    expect([mine.hold, store.writes]).toEqual([undefined, 0]);
    await clock.advance(1);
    expect(mine.hold).toMatchObject({ token: 2n });
  });

  it("is waited for no longer than a bound, whatever the record says", async () => {
    store.put(left("c", 1e12));
    const mine = campaign(open());
    await clock.advance(LONGEST_HEIR_MS);
    expect(mine.hold).toMatchObject({ token: 2n });
  });

  it("keeps out a candidate that does not wait", async () => {
    store.put(left("c"));
    const mine = campaign(open(), {}, false);
    await clock.advance(0);
    expect([mine.hold, store.writes]).toEqual([null, 0]);
  });

  it("is waited for although the leader that named it is dead", async () => {
    store.put(left("c"));
    const dead = Object.assign(store, { abandoned: () => Promise.resolve(true) });
    const mine = campaign(openOne(dead, clock));
    await clock.advance(4_999);
    expect(mine.hold).toBeUndefined();
  });

  it("is left a version that was pushed", async () => {
    store.put(lease());
    let push = (_entry: OneRecord["entry"]): void => {};
    const pushing = Object.assign(store, {
      watch: (_key: string, wake: (entry?: NonNullable<OneRecord["entry"]>) => void) => {
        push = (entry) => wake(entry ?? undefined);
        return new Promise<void>(() => {});
      },
    });
    const mine = campaign(openOne(pushing, clock));
    await clock.advance(10);
    push(store.put(left("c")));
    await clock.advance(10);
    expect([mine.hold, store.writes]).toEqual([undefined, 0]);
    push(store.put(left("b")));
    await clock.advance(0);
    expect(mine.hold).toMatchObject({ token: 4n });
  });

  it("is named in the releasing write, and only there", async () => {
    const backend = open({ uniqueVersions: true });
    const hold = await backend.campaign(candidacy(), { wait: false, signal: never });
    await hold?.renew({ signal: never });
    await hold?.release({ signal: never, heir: { candidate: "c", forMs: 700 } });
    expect(store.written.map(({ holder, heir }) => [holder, heir])).toEqual([
      ["b-1", undefined],
      ["b-1", undefined],
      [null, { candidate: "c", forMs: 700 }],
    ]);
    // Whoever gave it away does not take it back at once, though it knows the version.
    const again = campaign(backend);
    await clock.advance(699);
    expect(again.hold).toBeUndefined();
    await clock.advance(1);
    expect(again.hold).toMatchObject({ token: 4n });
  });
});

describe("a record's heir as text", () => {
  const text = (over: object): string =>
    JSON.stringify({ v: 1, ttlMs: 1_000, holder: null, token: "7", since: 5, value: "", ...over });

  it("is read back", () => {
    const record = left("c");
    expect(decodeLease(encodeLease(record))).toEqual(record);
    expect(decodeLease(text({ heir: "c", heirMs: 5 })).heir).toEqual({ candidate: "c", forMs: 5 });
  });

  it.each([
    { heir: "c" },
    { heirMs: 5 },
    { heir: 7, heirMs: 5 },
    { heir: "", heirMs: 5 },
    { heir: "c\u0000", heirMs: 5 },
    { heir: "c".repeat(201), heirMs: 5 },
    { heir: "c", heirMs: -5 },
    { heir: "c", heirMs: "5" },
    { heir: "c", heirMs: 5, holder: "a-1" },
  ])("that cannot be meant is none: %j", (over) => {
    expect("heir" in decodeLease(text(over))).toBe(false);
  });
});

describe("standing back", () => {
  const standing = (ms: number): Partial<Candidacy> => ({ standBackMs: () => ms });

  it("leaves a vacancy to others for a while", async () => {
    store.put(lease({ holder: null }));
    const mine = campaign(open(), standing(150));
    await clock.advance(149);
    expect([mine.hold, store.writes]).toEqual([undefined, 0]);
    await clock.advance(1);
    expect(mine.hold).toMatchObject({ token: 2n });
  });

  it("leaves the lease of a leader that fell silent to others too", async () => {
    store.put(lease({ ttlMs: 300 }));
    const mine = campaign(open(), standing(150));
    await clock.advance(449);
    expect(mine.hold).toBeUndefined();
    await clock.advance(1);
    expect(mine.hold).toMatchObject({ token: 2n });
  });

  it("never lasts longer than a ttl", async () => {
    const mine = campaign(open(), standing(1e9));
    await clock.advance(TTL_MS - 1);
    expect(mine.hold).toBeUndefined();
    await clock.advance(1);
    expect(mine.hold).toMatchObject({ token: 1n });
  });

  it("is asked at each vacancy anew", async () => {
    store.put(lease({ holder: null }));
    let ms = 150;
    const mine = campaign(open(), { standBackMs: () => ms });
    await clock.advance(100);
    ms = 50;
    store.put(lease({ holder: "c-1", ttlMs: 10_000 }));
    await clock.advance(100);
    store.put(lease({ holder: null }));
    // It looks again 400 ms after 150, when it found the leader.
    await clock.advance(350 + 49);
    expect(mine.hold).toBeUndefined();
    await clock.advance(1);
    expect(mine.hold).toMatchObject({ token: 4n });
  });

  it("is not for the heir, nor for who does not wait", async () => {
    store.put(left("b"));
    const heir = campaign(open(), standing(150));
    await clock.advance(0);
    expect(heir.hold).toMatchObject({ token: 2n });
    store.put(lease({ holder: null }));
    const once = campaign(open(), standing(150), false);
    await clock.advance(0);
    expect(once.hold).toMatchObject({ token: 4n });
  });
});
