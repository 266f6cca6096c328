/** The engine over a record store: lists, the store that it is on, what it asks for and what it does not. */
import { beforeEach, describe, expect, it } from "vitest";
import type { Backend, CallOptions, Candidacy, Hold, Leader } from "../../src/seam/backend.js";
import { readClocks } from "../../src/kit/clock.js";
import { leasesOf } from "../../src/record/backend.js";
import { textLeases } from "../../src/record/codec.js";
import { RecordHold } from "../../src/record/hold.js";
import { releaseClaim } from "../../src/record/release-claim.js";
import { memoryBackend } from "../../src/index.js";
import { SetClock } from "../support/set-clock.js";
import { TableServer } from "../support/table.js";
import { lease, never, OneRecord, openOne } from "./one-record.js";

const TTL_MS = 1_000;
const POLL_MS = 400;
const ATTEMPT_MS = 200;
const call = { signal: never };

let clock: SetClock;
let store: OneRecord;

beforeEach(() => {
  clock = new SetClock();
  store = new OneRecord();
});

const CANDIDACY: Candidacy = {
  ...{ election: "e", candidate: "b-1", value: "b" },
  ...{ ttlMs: TTL_MS, retryMs: POLL_MS, attemptMs: ATTEMPT_MS },
};

function campaign(
  backend: Backend,
  over: Partial<Candidacy> = {},
): { hold: Hold | null | undefined; error: unknown } {
  const state: { hold: Hold | null | undefined; error: unknown } = { hold: undefined, error: undefined };
  backend.campaign({ ...CANDIDACY, ...over }, { wait: true, signal: never }).then(
    (hold) => (state.hold = hold),
    (error: unknown) => (state.error = error),
  );
  return state;
}

function follow(backend: Backend, pollMs = POLL_MS): { seen: (Leader | null)[]; stop(): Promise<void> } {
  const controller = new AbortController();
  const seen: (Leader | null)[] = [];
  const done = (async () => {
    for await (const leader of backend.observe("e", {
      signal: controller.signal,
      pollMs,
      attemptMs: ATTEMPT_MS,
    }))
      seen.push(leader);
  })();
  return { seen, stop: () => (controller.abort(), done) };
}

const names = (seen: readonly (Leader | null)[]): (string | undefined)[] =>
  seen.map((leader) => leader?.candidate);

describe("a list of elections", () => {
  it("is the store's own, checked and sorted; whether it is complete the store says", async () => {
    const given: CallOptions[] = [];
    const texts = {
      ...new TableServer().texts("leases"),
      list: async (options: CallOptions) => {
        given.push(options);
        return { names: ["b", "a", "no\nname", "b"], complete: given.length > 1 };
      },
    };
    const backend = openOne(store, clock, { leases: textLeases(texts) });
    expect(await backend.list?.(call)).toEqual({ names: ["a", "b"], complete: false });
    expect(await backend.list?.(call)).toEqual({ names: ["a", "b"], complete: true });
    expect(given).toEqual([call, call]);
  });

  it("is not there where the store has none", () => {
    const leases = textLeases(new TableServer().texts("leases"));
    expect("list" in leases).toBe(false);
    expect(openOne(store, clock).list).toBeUndefined();
  });
});

it("the store under a backend is known, of this engine's backends only", () => {
  expect(leasesOf(openOne(store, clock))).toBe(store);
  const { name, guarantees, campaign: run, observe } = memoryBackend();
  const foreign = { name, guarantees, campaign: run, observe, [Symbol.asyncDispose]: async () => {} };
  expect(leasesOf(foreign)).toBeUndefined();
});

describe("a watch", () => {
  let signals: AbortSignal[];
  beforeEach(() => {
    signals = [];
    Object.assign(store, {
      watch: (_key: string, _wake: () => void, { signal }: CallOptions) => {
        signals.push(signal);
        return new Promise<void>(() => {});
      },
    });
  });

  it("ends with its campaign and with its observer, and is armed once for each", async () => {
    store.put(lease({ ttlMs: 3_000 }));
    const backend = openOne(store, clock);
    const waiting = campaign(backend);
    await clock.advance(3_000);
    expect(waiting.hold).toBeDefined();
    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
    const { stop } = follow(backend);
    await clock.advance(2_500);
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, false]);
    await stop();
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
  });
});

describe("whether a holder is dead", () => {
  let asked: AbortSignal[];
  let answer: () => Promise<boolean>;
  beforeEach(() => {
    asked = [];
    answer = async () => false;
    Object.assign(store, {
      abandoned: (_key: string, _version: bigint, { signal }: CallOptions) => {
        asked.push(signal);
        return answer();
      },
    });
  });

  it("is not asked when there is none", async () => {
    store.put(lease({ holder: null }));
    const waiting = campaign(openOne(store, clock));
    await clock.advance(0);
    expect([waiting.hold?.token, asked]).toEqual([2n, []]);
  });

  it("is asked between two looks at the record, and does not make them come sooner", async () => {
    store.put(lease({ ttlMs: 60_000 }));
    const waiting = campaign(openOne(store, clock, { wakeJitterMs: 5_000 }), { retryMs: 1_000 });
    await clock.advance(999);
    expect([asked.length, store.reads]).toEqual([5, 1]); // at once, then every 200 ms
    await clock.advance(1);
    expect(store.reads).toBe(2);
    expect(waiting.hold).toBeUndefined();
  });

  it("is a call like any other: told to stop when its time is up", async () => {
    store.put(lease({ ttlMs: 60_000 }));
    answer = () => new Promise(() => {});
    campaign(openOne(store, clock));
    await clock.advance(ATTEMPT_MS - 1);
    expect(asked.map(({ aborted }) => aborted)).toEqual([false]);
    await clock.advance(1);
    expect(asked[0]?.aborted).toBe(true);
  });
});

describe("an acquiring write that is not answered", () => {
  it("is not taken back while its campaign waits: the next attempt meets it and takes it over", async () => {
    const backend = openOne(store, clock);
    store.afterWrite = () => new Promise(() => {});
    const first = campaign(backend);
    await clock.advance(ATTEMPT_MS);
    expect(first.error).toMatchObject({ code: "timeout" });
    store.afterWrite = () => {};
    await clock.advance(2 * ATTEMPT_MS);
    expect(store.written.map(({ holder }) => holder)).toEqual(["b-1"]);
    const second = campaign(backend);
    await clock.advance(0);
    expect(second.hold?.token).toBe(2n);
  });
});

describe("a store that says that its answer is current", () => {
  const at = (version: bigint, holder: string | null, current = true): void => {
    store.entry = { version, record: lease({ holder }), ...(current && { current }) };
  };

  it("and is lower than what was shown has gone back: observers are shown its leader at once", async () => {
    const { seen, stop } = follow(openOne(store, clock));
    at(7n, "a-1");
    await clock.advance(POLL_MS);
    at(3n, "c-1", false);
    await clock.advance(POLL_MS);
    expect(names(seen)).toEqual(["a-1"]); // may be a replica that lags
    at(3n, "c-1");
    await clock.advance(POLL_MS);
    expect(names(seen)).toEqual(["a-1", "c-1"]);
    await stop();
  });

  it("is believed even if it was taken for a lagging one for long enough to be judged by its own", async () => {
    const backend = openOne(store, clock);
    at(7n, "a-1");
    const { seen, stop } = follow(backend);
    await clock.advance(0);
    at(3n, "c-1", false);
    await clock.advance(4 * TTL_MS); // what was seen is now version 3; what was shown is still 7
    expect(names(seen)).toEqual(["a-1"]);
    at(4n, "c-1"); // renewed; above the one, below the other
    await clock.advance(POLL_MS);
    expect(names(seen)).toEqual(["a-1", "c-1"]);
    await stop();
  });

  it("is a reason to count the silence of its holder from now on, also for those who have only campaigned", async () => {
    const backend = openOne(store, clock);
    at(9n, "a-1");
    const waiting = campaign(backend, { retryMs: 100 });
    await clock.advance(500);
    at(8n, "c-1");
    await clock.advance(TTL_MS - 1);
    expect(waiting.hold).toBeUndefined();
    await clock.advance(101);
    expect(waiting.hold?.token).toBe(9n);
  });

  it("and is not ours, at a version not above ours: the hold is lost; if it may be stale that is unknown", async () => {
    const record = { ...lease(), holder: "a-1", ttlMs: TTL_MS };
    const { version } = store.put(record);
    const hold = (): RecordHold =>
      new RecordHold(clock, store, { key: "e", record, version: version + 5n, asked: readClocks(clock) });
    at(2n, "c-1", false);
    await expect(hold().renew(call)).rejects.toMatchObject({ code: "unavailable" });
    at(2n, "c-1");
    expect(await hold().renew(call)).toBe("lost");
  });
});

describe("an observer of nobody", () => {
  it("looks at its own pace, whatever the record would allow", async () => {
    store.put(lease({ holder: null, ttlMs: 50 }));
    const { seen, stop } = follow(openOne(store, clock));
    await clock.advance(POLL_MS - 1);
    expect([store.reads, seen]).toEqual([1, [null]]);
    await stop();
  });

  it("looks again when a leader's silence is long enough, not every millisecond before", async () => {
    store.put(lease({ ttlMs: 300 }));
    const { stop } = follow(openOne(store, clock));
    await clock.advance(299);
    expect(store.reads).toBe(1);
    await stop();
  });
});

describe("a claim", () => {
  const claim = { election: "e", candidate: "a-1", token: 1n };

  it("is released by a vacant record that keeps the token and no value", async () => {
    store.put(lease());
    expect(await releaseClaim(store, claim, call)).toBe("released");
    expect(store.written).toEqual([lease({ holder: null, value: "", token: 1n })]);
  });

  it("is tried four times while the record changes, then its outcome is unknown", async () => {
    store.put(lease());
    store.beforeWrite = () => void store.put(lease({ token: 1n }));
    await expect(releaseClaim(store, claim, call)).rejects.toMatchObject({ code: "unavailable" });
    expect([store.reads, store.writes]).toEqual([4, 4]);
  });
});
