/** What a reader concludes from what it has seen, and from what it has not. */
import { describe, expect, it } from "vitest";
import type { Entry } from "../../src/seam/table.js";
import {
  leaderFromRecord,
  observed,
  unreadable,
  UNKNOWN_HOLDER,
  untilSilent,
} from "../../src/record/lease.js";
import type { LeaseRecord } from "../../src/record/lease.js";
import { lease } from "./one-record.js";

const OWN_TTL = 500;
const entry = (version: bigint, over: Partial<LeaseRecord> = {}): Entry<LeaseRecord> => ({
  version,
  record: lease(over),
});

describe("an observation", () => {
  it("stays as old as it is while nothing changes, however long", () => {
    const seen = observed(undefined, entry(7n), 100, OWN_TTL);
    expect(observed(seen, entry(7n), 100_000, OWN_TTL)).toEqual(seen);
  });

  it("follows the version where the renewalId stays, so that the next lower one is known to be stale", () => {
    const marked = (version: bigint): Entry<LeaseRecord> => ({ ...entry(version), renewalId: "same" });
    const seen = observed(observed(undefined, marked(7n), 100, OWN_TTL), marked(9n), 200, OWN_TTL);
    expect(seen).toEqual({ version: 9n, renewalId: "same", at: 100, changed: false });
  });

  it("of a version that went back counts once it has lasted for two ttls of the record", () => {
    const seen = observed(undefined, entry(8n), 100, OWN_TTL);
    const after = (ms: number): unknown => observed(seen, entry(3n), 100 + ms, OWN_TTL);
    expect(after(1_999)).toBe(seen);
    expect(after(2_000)).toMatchObject({ version: 3n, at: 2_100, changed: false });
  });

  it("takes a record of the same version by another writer, or of another term, for a change", () => {
    const seen = observed(undefined, entry(7n), 100, OWN_TTL);
    for (const over of [{ holder: "b-1" }, { since: 6 }, { holder: null }])
      expect(observed(seen, entry(7n, over), 200, OWN_TTL)).toMatchObject({ at: 200, changed: true });
    expect(observed(seen, entry(7n, { value: "w" }), 200, OWN_TTL)).toEqual(seen);
  });

  it("knows whether the record changed while it was watched, or was found as it is", () => {
    const found = observed(undefined, entry(7n), 100, OWN_TTL);
    const changed = observed(found, entry(8n), 200, OWN_TTL);
    expect(changed).toMatchObject({ version: 8n, at: 200, changed: true });
    expect(observed(changed, entry(8n), 900, OWN_TTL)).toEqual(changed);
  });

  it("of a change makes its own clock count beside the store's, which may have been set forward", () => {
    const found = observed(undefined, entry(7n), 100, OWN_TTL);
    const changed = observed(found, entry(8n), 200, OWN_TTL);
    const timed = (version: bigint, expiresInMs: number): Entry<LeaseRecord> => ({
      ...entry(version),
      expiresInMs,
    });
    expect(untilSilent(timed(8n, 5), changed, OWN_TTL, 300)).toBe(900);
    expect(untilSilent(timed(8n, 850), changed, OWN_TTL, 300)).toBe(900);
    expect(untilSilent(timed(7n, 5), found, OWN_TTL, 300)).toBe(5);
    expect(untilSilent(timed(9n, 5), changed, OWN_TTL, 300)).toBe(5);
  });

  it("waits for a holder that stops before its ttl only until it has stopped, by the slowest clock", () => {
    const record = { ttlMs: 1_000, stopMs: 680 };
    const found = observed(undefined, entry(7n, record), 100, OWN_TTL);
    const changed = observed(found, entry(8n, record), 200, OWN_TTL);
    const timed: Entry<LeaseRecord> = { ...entry(8n, record), expiresInMs: 5 };
    // 680 / 0.85, and a quarter of the margin of 320: a suspend that the holder may overlook.
    expect(untilSilent(timed, changed, OWN_TTL, 200)).toBe(880);
    expect(untilSilent({ ...timed, expiresInMs: 950 }, changed, OWN_TTL, 200)).toBe(950);
    const nearly = { ...timed, record: { ...timed.record, stopMs: 990 } };
    expect(untilSilent(nearly, changed, OWN_TTL, 200)).toBe(1_000);
  });

  it("of no change for a whole ttl does not wait for a store whose clock was set back", () => {
    const found = observed(undefined, entry(7n), 100, OWN_TTL);
    const timed: Entry<LeaseRecord> = { ...entry(7n), expiresInMs: 3_600_000 };
    expect(untilSilent(timed, found, OWN_TTL, 300)).toBe(800);
    expect(untilSilent(timed, undefined, OWN_TTL, 300)).toBe(3_600_000);
  });

  it("takes the reader's own ttl for a record that names none", () => {
    const seen = observed(undefined, entry(8n), 100, OWN_TTL);
    const unnamed = entry(3n, { ttlMs: null });
    expect(observed(seen, unnamed, 1_099, OWN_TTL)).toBe(seen);
    expect(observed(seen, unnamed, 1_100, OWN_TTL)).toMatchObject({ version: 3n, at: 1_100 });
    expect(untilSilent(unnamed, undefined, OWN_TTL, 0)).toBe(OWN_TTL);
    expect(untilSilent(unnamed, observed(undefined, unnamed, 100, OWN_TTL), OWN_TTL, 150)).toBe(450);
  });
});

describe("who leads", () => {
  it("is told with the begin of the term, if the record names one", () => {
    expect(leaderFromRecord(entry(7n, { since: 5 }), undefined, OWN_TTL, 0)).toEqual({
      candidate: "a-1",
      token: 7n,
      value: "v",
      since: 5,
    });
    for (const since of [0, -1])
      expect(leaderFromRecord(entry(7n, { since }), undefined, OWN_TTL, 0)).toMatchObject({
        since: undefined,
      });
  });

  it("is nobody without a record, or with a vacant one", () => {
    expect(leaderFromRecord(null, undefined, OWN_TTL, 0)).toBeNull();
    expect(leaderFromRecord(entry(7n, { holder: null }), undefined, OWN_TTL, 0)).toBeNull();
  });

  it("is somebody unknown, without a value, where the record cannot be read", () => {
    expect(unreadable()).toEqual({ holder: UNKNOWN_HOLDER, ttlMs: null, value: "", since: 0, token: null });
    expect(unreadable(70).ttlMs).toBe(70);
  });
});
