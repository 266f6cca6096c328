/** A hold on a shared lease, its key, and the pool that grants leases: what is undone, and what an answer means. No server. */
import { getEventListeners } from "node:events";
import { beforeEach, describe, expect, it } from "vitest";
import { CandidateKey } from "../../src/backends/etcd/candidate-key.js";
import type {
  EtcdClient,
  Transaction,
  TransactionAnswer,
  WatchNotice,
  WatchRequest,
} from "../../src/backends/etcd/client.js";
import { EtcdHold } from "../../src/backends/etcd/hold.js";
import { LeasePool } from "../../src/backends/etcd/lease-pool.js";
import { PredecessorWatch } from "../../src/backends/etcd/predecessor-watch.js";
import { SharedLease } from "../../src/backends/etcd/shared-lease.js";
import { readClocks } from "../../src/kit/clock.js";
import { ConclaveError } from "../../src/kit/errors.js";
import { outcome } from "../support/hand-backend.js";
import { SetClock } from "../support/set-clock.js";

const TTL_MS = 6_000;
const never = new AbortController().signal;

interface Watch {
  readonly request: WatchRequest;
  readonly tell: (notice: WatchNotice) => void;
}

let clock: SetClock;
let keys: Map<string, bigint>;
let revision: bigint;
let watches: Set<Watch>;
let happened: string[];
/** What a grant answers with. */
let granted: () => Promise<{ id: bigint; ttl: bigint }>;
/** Called before each transaction. */
let onTransaction: (transaction: Transaction) => unknown;

const client: EtcdClient = {
  leaseGrant: async (seconds) => {
    happened.push(`grant ${seconds}`);
    return granted();
  },
  leaseKeepAlive: async () => ({ ttl: 6n, revision, raftTerm: 1n }),
  leaseRevoke: async (id) => void happened.push(`revoke ${id}`),
  watch: (request, tell) => {
    const watch = { request, tell };
    watches.add(watch);
    return () => void watches.delete(watch);
  },
  transaction: async (transaction): Promise<TransactionAnswer> => {
    await onTransaction(transaction);
    const { when, then } = transaction;
    const succeeded = when.every(({ key, value }) => keys.get(key) === value);
    const results = then.map((operation) => {
      const createRevision = keys.get(operation.key);
      if (operation.kind === "delete" && succeeded && keys.delete(operation.key)) revision++;
      if (operation.kind !== "range" || createRevision === undefined) return { kvs: [] };
      return {
        kvs: [{ key: operation.key, value: "", createRevision, modRevision: createRevision, lease: 1n }],
      };
    });
    return { succeeded, results, revision, raftTerm: 1n, connection: client };
  },
  [Symbol.asyncDispose]: async () => {},
};

beforeEach(async () => {
  clock = new SetClock();
  await clock.advance(1_000);
  [keys, watches, happened, revision] = [new Map(), new Set(), [], 10n];
  granted = async () => ({ id: 7n, ttl: 6n });
  onTransaction = () => {};
});

function leased(): SharedLease {
  return new SharedLease({
    ...{ client, clock, id: 1n, ttlMs: TTL_MS, asked: readClocks(clock) },
    retired: () => void happened.push("retired"),
  });
}

function held(lease: SharedLease, name = "e"): { hold: EtcdHold; key: CandidateKey } {
  const key = lease.addKey(name, { election: name, candidate: "c" });
  keys.set(name, ++revision);
  key.sent = true;
  key.created(revision);
  return { key, hold: new EtcdHold(client, key, revision, lease, 1_000, async () => {}) };
}

describe("a hold", () => {
  it("whose key is gone when it proclaims is lost, and says so from then on", async () => {
    const lease = leased();
    const { hold, key } = held(lease);
    keys.clear();
    expect(await hold.proclaim("v", { signal: never })).toBe("lost");
    expect([key.aborted, watches.size]).toEqual([true, 0]);
    let asked = 0;
    onTransaction = () => void asked++;
    expect(await hold.proclaim("v", { signal: never })).toBe("lost");
    expect(await hold.renew({ signal: never })).toBe("lost");
    expect(asked).toBe(0);
    await lease.close(1_000);
  });

  it("that is lost while it proclaims is not extended by the answer", async () => {
    const lease = leased();
    const { hold, key } = held(lease);
    onTransaction = () => key.lose("deleted meanwhile");
    expect(await hold.proclaim("v", { signal: never })).toBe("lost");
    await lease.close(1_000);
  });

  it("that is lost while it renews says so; what is not known is not a loss", async () => {
    const lease = leased();
    const { hold, key } = held(lease);
    await clock.advance(10);
    onTransaction = () => {
      throw new ConclaveError("unavailable", "away");
    };
    await expect(hold.renew({ signal: never })).rejects.toMatchObject({ code: "unavailable" });
    onTransaction = () => {
      key.lose("deleted meanwhile");
      throw new ConclaveError("unavailable", "away");
    };
    expect(await hold.renew({ signal: never })).toBe("lost");
    await lease.close(1_000);
  });

  it("is extended by what it was handed out with last, so that the next renewal is newer", async () => {
    const lease = leased();
    const { hold, key } = held(lease);
    await clock.advance(10);
    const first = await hold.renew({ signal: never });
    expect(first).toMatchObject({ asked: { now: 1_010 } });
    expect(key.handedOut).toBe(1_010);
    await clock.advance(10);
    expect(await hold.renew({ signal: never })).toMatchObject({ asked: { now: 1_020 } });
    await lease.close(1_000);
  });

  it("that could not be released is removed after the next renewal, and its election is free then", async () => {
    const lease = leased();
    const { hold } = held(lease);
    held(lease, "other");
    onTransaction = ({ then }) => {
      if (then.some(({ kind }) => kind === "delete")) throw new ConclaveError("unavailable", "away");
    };
    await expect(hold.release({ signal: never })).rejects.toMatchObject({ code: "unavailable" });
    expect([keys.has("e"), lease.serves("e")]).toEqual([true, false]);
    onTransaction = () => {};
    await clock.advance(10);
    await lease.renew();
    await clock.advance(0);
    expect([keys.has("e"), lease.serves("e")]).toEqual([false, true]);
    await lease.close(1_000);
  });
});

describe("a lease", () => {
  it("that is gone retires once, tells its followers, and asks nothing any more", async () => {
    const lease = leased();
    const { key } = held(lease);
    let lost = 0;
    lease.follow({ attempted: () => void happened.push("attempted"), lost: () => void lost++ });
    lease.notFound();
    expect([lost, key.aborted, lease.ended, happened]).toEqual([1, true, true, ["retired"]]);
    await expect(lease.renew()).rejects.toMatchObject({ code: "unavailable" });
    await clock.advance(3 * TTL_MS);
    expect([happened, clock.timers, watches.size]).toEqual([["retired"], 0, 0]);
  });

  it("whose keys may not be read is given up once no term can be held on it", async () => {
    const lease = leased();
    lease.addKey("e", { election: "e", candidate: "c" });
    onTransaction = () => {
      throw new ConclaveError("forbidden", "no right to read");
    };
    await clock.advance(TTL_MS);
    expect(happened).not.toContain("revoke 1");
    await clock.advance(TTL_MS);
    expect(happened).toContain("revoke 1");
    expect([lease.ended, clock.timers]).toEqual([true, 0]);
  });

  it("that was renewed out of turn is renewed again a third of its ttl later, not sooner", async () => {
    const lease = leased();
    held(lease);
    lease.follow({ attempted: () => void happened.push("attempted"), lost: () => {} });
    await clock.advance(1_500);
    await lease.renew();
    expect(happened).toEqual(["attempted"]);
    await clock.advance(1_700);
    expect(happened).toHaveLength(1);
    await clock.advance(300);
    expect(happened).toHaveLength(2);
    await lease.close(1_000);
  });
});

describe("a key", () => {
  const transactions = { ask: () => Promise.reject(new Error("nothing is asked here")) };
  const owner = { id: 1n, transactions, forget: () => void happened.push("forgotten") };
  const request = { election: "e", candidate: "c" };

  it("that was lost or left is not watched any more; one whose watch was cut by a compaction is", () => {
    for (const end of ["lose", "leave"] as const) {
      const key = new CandidateKey(client, owner, "k", request);
      key.created(11n);
      const [watch] = watches;
      expect(watch?.request).toMatchObject({ key: "k", startRevision: 12n });
      watches.clear();
      watch?.tell({ kind: "compacted", revision: 20n });
      expect([...watches].map((each) => each.request.startRevision)).toEqual([21n]);
      if (end === "lose") key.lose("test");
      else key.leave();
      expect(watches.size).toBe(0);
    }
    expect(happened).toEqual(["forgotten"]);
  });

  it("keeps a wake for who waits next, once, and unlinks who waited", async () => {
    const key = new CandidateKey(client, owner, "k", request);
    const stop = new AbortController();
    key.wake();
    await key.untilWoken(stop.signal);
    const second = outcome(key.untilWoken(stop.signal));
    await clock.advance(0);
    expect([second.settled, getEventListeners(stop.signal, "abort").length]).toEqual([false, 1]);
    key.wake();
    await clock.advance(0);
    expect([second.settled, getEventListeners(stop.signal, "abort").length]).toEqual([true, 0]);
    key.lose("test");
    await expect(key.untilWoken(stop.signal)).rejects.toMatchObject({ code: "unavailable" });
  });

  it("waits for another one no longer than it watches it", async () => {
    const key = new CandidateKey(client, owner, "k", request);
    const watch = new PredecessorWatch(client, key, never);
    const ahead = { key: "p", value: "", createRevision: 5n, modRevision: 5n, lease: 2n };
    const waiting = watch.untilChanged(ahead);
    expect(key.predecessor).toEqual({ key: "p", createRevision: 5n });
    [...watches][0]!.tell({ kind: "compacted", revision: 9n });
    await waiting;
    const again = watch.untilChanged(ahead); // that watch has ended: another one
    expect(watches.size).toBe(1);
    [...watches][0]!.tell({ kind: "events", events: [] });
    await again;
    watch.end();
    expect([key.predecessor, watches.size]).toEqual([undefined, 0]);
  });
});

describe("the pool", () => {
  const asked = (pool: LeasePool, election: string): Promise<unknown> =>
    pool.createKey(
      { election, candidate: "c", ttlMs: TTL_MS, key: (hex) => `${election}/${hex}` },
      { signal: never, limitMs: 1_000 },
    );

  it("asks once for all who wait, and again after a failure", async () => {
    const pool = new LeasePool(client, clock);
    granted = () => Promise.reject(new ConclaveError("unavailable", "away"));
    const failed = await Promise.allSettled([asked(pool, "a"), asked(pool, "b")]);
    expect(failed.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    expect(happened).toEqual(["grant 6"]);
    granted = async () => ({ id: 7n, ttl: 6n });
    await Promise.all([asked(pool, "a"), asked(pool, "b")]);
    expect(happened).toEqual(["grant 6", "grant 6"]);
    await pool.close(1_000);
    expect([happened.at(-1), clock.timers]).toEqual(["revoke 7", 0]);
  });

  it("gives a second candidate of one election a lease of its own", async () => {
    const pool = new LeasePool(client, clock);
    let id = 6n;
    granted = async () => ({ id: ++id, ttl: 6n });
    await asked(pool, "a");
    await asked(pool, "b");
    await asked(pool, "a");
    expect(happened).toEqual(["grant 6", "grant 6"]);
    await pool.close(1_000);
    expect(happened.toSorted()).toEqual(["grant 6", "grant 6", "revoke 7", "revoke 8"]);
  });

  it("gives back a lease of another ttl than asked for, and one that comes after it was closed", async () => {
    const pool = new LeasePool(client, clock);
    granted = async () => ({ id: 7n, ttl: 9n });
    await expect(asked(pool, "a")).rejects.toMatchObject({ code: "invalid" });
    expect(happened).toEqual(["grant 6", "revoke 7"]);
    let grant = (): void => {};
    granted = () => new Promise((resolve) => (grant = () => resolve({ id: 8n, ttl: 6n })));
    const late = outcome(asked(pool, "a"));
    await clock.advance(0);
    grant();
    await pool.close(1_000);
    await clock.advance(0);
    expect(late.error).toMatchObject({ code: "state" });
    expect(clock.timers).toBe(0);
  });
});
