/** A store that goes back: when a lower version is proof of it, and when it may be a stale read. */
import { beforeEach, describe, expect, it } from "vitest";
import type { Entry } from "../../src/seam/table.js";
import { wentBack } from "../../src/record/lease.js";
import type { LeaseRecord } from "../../src/record/lease.js";
import { ExpiringMap } from "../../src/kit/expiring-map.js";
import { ShownVersions } from "../../src/record/shown-versions.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";
import { lease, never, OneRecord, openOne } from "./one-record.js";
import { isConclaveError } from "../../src/kit/errors.js";
import { Election } from "../../src/election/election.js";

const entry = (version: bigint, over: Partial<Entry<LeaseRecord>> = {}): Entry<LeaseRecord> => ({
  version,
  record: lease(),
  ...over,
});

describe("a store has certainly gone back", () => {
  it("if it vouches for a version below one that was known", () => {
    expect(wentBack(entry(6n, { current: true }), 7n)).toBe(true);
  });

  it.each([
    ["the same version", entry(7n, { current: true }), 7n],
    ["a higher one", entry(8n, { current: true }), 7n],
    ["a read that it does not vouch for", entry(6n, { current: false }), 7n],
    ["a read of which it says nothing", entry(6n), 7n],
    ["nothing to compare with", entry(6n, { current: true }), -1n],
  ])("but not by %s", (_, seen, known) => {
    expect(wentBack(seen, known)).toBe(false);
  });
});

describe("an older version than was shown", () => {
  const OWN_TTL = 500;
  let clock: VirtualClock;
  let shown: ShownVersions;

  beforeEach(async () => {
    clock = new VirtualClock();
    await clock.advance(70);
    shown = new ShownVersions(clock, new ExpiringMap(clock), "e");
    expect(shown.accepts(entry(7n), OWN_TTL)).toBe(true);
  });

  it("is not shown until it has lasted for ten ttls of the record, and then is the order", async () => {
    expect(shown.accepts(entry(3n), OWN_TTL)).toBe(false);
    await clock.advance(9_999);
    expect(shown.accepts(entry(3n), OWN_TTL)).toBe(false);
    await clock.advance(1);
    expect([shown.accepts(entry(3n), OWN_TTL), shown.accepts(entry(4n), OWN_TTL)]).toEqual([true, true]);
  });

  it("is counted by the reader's own ttl if the record names none", async () => {
    const unnamed = entry(3n, { record: lease({ ttlMs: null }) });
    expect(shown.accepts(unnamed, OWN_TTL)).toBe(false);
    await clock.advance(4_999);
    expect(shown.accepts(unnamed, OWN_TTL)).toBe(false);
    await clock.advance(1);
    expect(shown.accepts(unnamed, OWN_TTL)).toBe(true);
  });

  it("is counted anew after a newer one was shown in between", async () => {
    expect(shown.accepts(entry(3n), OWN_TTL)).toBe(false);
    await clock.advance(9_000);
    expect(shown.accepts(entry(7n), OWN_TTL)).toBe(true);
    await clock.advance(9_000);
    expect(shown.accepts(entry(3n), OWN_TTL)).toBe(false);
  });
});

describe("a store that went back and counts anew", () => {
  it("does not make two leaders with one token: what a campaign has read cannot be granted again", async () => {
    const clock = new VirtualClock();
    const store = new OneRecord();
    const backend = openOne(store, clock);
    const election = new Election({ name: "e", id: "b", backend, clock, ttlMs: 1_000 });
    const codes: string[] = [];
    election.on("error", ({ error }) => codes.push(isConclaveError(error) ? error.code : String(error)));
    for (let i = 0; i < 7; i++) store.put(lease()); // the last one is the grant of token 7
    expect(await election.tryCampaign()).toBeNull();
    store.entry = { version: 6n, record: lease({ holder: null, token: 5n }) };
    await expect(election.tryCampaign()).rejects.toThrow("granted token 7, but after the tokens seen before");
    // It was given back. The next number is a new one.
    const term = await election.tryCampaign();
    expect(term?.token).toBeGreaterThan(7n);
    await election.close();
    expect(store.entry.record.holder).toBeNull();
  });

  it("is told the lowest token that can follow every record that was read", async () => {
    const store = new OneRecord();
    const floor: bigint[] = [];
    store.put(lease({ holder: null }));
    const candidacy = {
      election: "e",
      candidate: "b-1",
      value: "",
      ttlMs: 1_000,
      retryMs: 100,
      attemptMs: 100,
    };
    const backend = openOne(store, new VirtualClock());
    const hold = await backend.campaign(candidacy, {
      wait: false,
      signal: never,
      seen: (token) => floor.push(token),
    });
    expect(floor).toEqual([2n]);
    expect(hold?.token).toBe(2n);
  });
});
