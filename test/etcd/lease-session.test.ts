/** The lease that many holds share: denials, denied leases, restores, keys that are removed later. On a virtual clock. */
import { beforeEach, describe, expect, it } from "vitest";
import type { CandidateKey } from "../../src/backends/etcd/candidate-key.js";
import type { EtcdClient, Transaction, TransactionAnswer } from "../../src/backends/etcd/client.js";
import { SharedLease } from "../../src/backends/etcd/shared-lease.js";
import { readClocks } from "../../src/kit/clock.js";
import { ConclaveError } from "../../src/kit/errors.js";
import { SetClock } from "../support/set-clock.js";

const TTL_MS = 6_000;
const never = new AbortController().signal;

let clock: SetClock;
/** Create revisions of the keys in the store. */
let keys: Map<string, bigint>;
let revision: bigint;
let ttl: bigint;
let forbidden: Set<string>;
let revoked: number;
let retired: number;
let lease: SharedLease;

const unused = (): never => {
  throw new Error("not asked for");
};

const client: EtcdClient = {
  leaseGrant: unused,
  leaseKeepAlive: async () => ({ ttl, revision, raftTerm: 1n }),
  leaseRevoke: async () => void revoked++,
  watch: () => () => {},
  transaction: async ({ when, then }: Transaction): Promise<TransactionAnswer> => {
    if (then.some(({ key }) => forbidden.has(key))) throw new ConclaveError("forbidden", "not this one");
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
  keys = new Map();
  forbidden = new Set();
  [revision, ttl, revoked, retired] = [10n, 6n, 0, 0];
  lease = new SharedLease({
    ...{ client, clock, id: 1n, ttlMs: TTL_MS, asked: readClocks(clock) },
    retired: () => void retired++,
  });
});

/** A key in the store; a hold was handed out for it. */
function held(name: string): CandidateKey {
  const candidateKey = lease.addKey(name, { election: name, candidate: "c" });
  keys.set(name, ++revision);
  candidateKey.sent = true;
  candidateKey.created(revision);
  lease.handedOut(candidateKey);
  return candidateKey;
}

const follow = (): (() => void) => lease.follow({ attempted: () => {}, lost: () => {} });

/** One renewal, some time after the last; what it rejects with. */
async function renew(): Promise<string | undefined> {
  await clock.advance(10);
  return lease.renew().then(
    () => undefined,
    (error: unknown) => (error instanceof ConclaveError ? error.code : String(error)),
  );
}

describe("a key that may not be read any more", () => {
  it("is denied by the second refusal in a row, and takes no other with it", async () => {
    follow();
    const [a, b] = [held("a"), held("b")];
    forbidden.add("a");
    expect(await renew()).toBe("unavailable");
    expect([a.aborted, b.aborted]).toEqual([false, false]);
    expect(await renew()).toBeUndefined();
    expect([a.aborted, b.aborted]).toEqual([true, false]);
    expect(b.extension).toBe(lease.extension);
    expect(a.extension).not.toBe(lease.extension);
  });

  it("and was read in between is not", async () => {
    follow();
    const [a] = [held("a"), held("b")];
    for (let round = 0; round < 3; round++) {
      forbidden.add("a");
      expect(await renew()).toBe("unavailable");
      forbidden.clear();
      revision++; // somebody wrote: all keys are read again
      expect(await renew()).toBeUndefined();
    }
    expect(a.aborted).toBe(false);
  });

  it.each([0, 1, 2])("is not in the way of the others, whichever is read first: %i", async (first) => {
    follow();
    const all = [held("a"), held("b"), held("c")];
    const denied = all[first]!;
    forbidden.add(denied.key);
    expect(await renew()).toBe("unavailable");
    for (let round = 0; round < 4; round++) {
      revision++;
      expect(await renew(), `round ${round}`).toBeUndefined();
      for (const key of all) if (key !== denied) expect(key.extension).toBe(lease.extension);
    }
    expect(all.map(({ aborted }) => aborted)).toEqual([0, 1, 2].map((i) => i === first));
  });
});

describe("a lease that the store denies", () => {
  it("is not believed to be gone while its keys are there", async () => {
    follow();
    const a = held("a");
    ttl = 0n;
    expect(await renew()).toBe("unavailable");
    expect([a.aborted, lease.ended, retired]).toEqual([false, false, 0]);
    keys.clear();
    expect(await renew()).toBe("unavailable");
    expect([a.aborted, lease.ended, retired]).toEqual([true, true, 1]);
  });

  it.each([3, 450])(
    "is told to each of %i holds on it: a term whose work is stopping follows no lease",
    async (count) => {
      follow();
      let told = 0;
      for (let i = 0; i < count; i++) held(`k${i}`).addEventListener("abort", () => told++);
      expect(await renew()).toBeUndefined();
      revision--;
      expect(await renew()).toBe("unavailable");
      for (let i = 0; i < 5; i++) await clock.advance(0);
      expect(told).toBe(count);
    },
  );

  it("is given up, and revoked, if the revision went back", async () => {
    follow();
    const a = held("a");
    expect(await renew()).toBeUndefined();
    revision--;
    expect(await renew()).toBe("unavailable");
    expect([a.aborted, lease.ended]).toEqual([true, true]);
    await clock.advance(0);
    expect([revoked, retired]).toEqual([1, 1]);
  });

  it("is not by a revision that stays the same", async () => {
    follow();
    held("a");
    expect([await renew(), await renew(), lease.ended]).toEqual([undefined, undefined, false]);
  });
});

describe("a renewal for one hold", () => {
  it("is newer than what the hold was handed out with", async () => {
    const a = held("a");
    expect(await renew()).toBeUndefined();
    a.handedOut = lease.extension.asked.now; // as the holder knows it
    await clock.advance(10);
    const { asked } = await lease.renewFor(a);
    expect(asked.now).toBe(clock.now());
    expect(asked.now).toBeGreaterThan(a.handedOut);
  });

  it("is asked for once for all who ask meanwhile", async () => {
    follow();
    const [a, b] = [held("a"), held("b")];
    await clock.advance(10);
    const [first, second] = await Promise.all([lease.renewFor(a), lease.renewFor(b)]);
    expect(first).toBe(second);
  });
});

describe("a key whose term ended without a release", () => {
  it("stays until the lease that its term counted on ends, though renewals go on, and goes then", async () => {
    follow();
    held("kept");
    const a = held("a");
    const at = clock.now() + 5_000;
    lease.abandon(a, at);
    await clock.advance(4_999);
    expect(await lease.renew().then(() => keys.has("a"))).toBe(true);
    await clock.advance(1);
    expect(keys.has("a")).toBe(false);
    expect(keys.has("kept")).toBe(true);
  });

  it("goes at its own time, whichever was given up first", async () => {
    follow();
    held("kept");
    const [a, b, c] = [held("a"), held("b"), held("c")];
    const now = clock.now();
    lease.abandon(b, now + 1_000);
    lease.abandon(a, now + 500);
    lease.abandon(c, now + 1_500);
    const left = (): string => [...keys.keys()].join(" ");
    await clock.advance(499);
    expect(left()).toBe("kept a b c");
    await clock.advance(1);
    expect(left()).toBe("kept b c");
    await clock.advance(500);
    expect(left()).toBe("kept c");
    await clock.advance(500);
    expect(left()).toBe("kept");
  });

  it("keeps its lease from being revoked until then", async () => {
    const unfollow = follow();
    const a = held("a");
    lease.abandon(a, clock.now() + 3_000);
    unfollow();
    await lease.close(1_000);
    expect([revoked, retired]).toEqual([0, 1]);
  });
});

describe("a hold that nobody follows", () => {
  it("lives one ttl from the question it was last handed out with", async () => {
    const a = held("a");
    await clock.advance(TTL_MS / 2);
    const { asked } = await lease.renewFor(a);
    a.handedOut = asked.now;
    await clock.advance(asked.now + TTL_MS - 1 - clock.now());
    expect([a.state, keys.has("a")]).toEqual(["held", true]);
    await clock.advance(1);
    expect(a.state).toBe("left");
    await clock.advance(1_000); // no longer until its key is gone, though no renewal is due
    expect(keys.has("a")).toBe(false);
  });

  it("is left alone while somebody follows", async () => {
    const a = held("a");
    follow();
    await clock.advance(3 * TTL_MS);
    expect([a.state, keys.has("a")]).toEqual(["held", true]);
  });
});

describe("closing", () => {
  it("revokes a lease that nobody can lead by, and no other", async () => {
    const a = held("a");
    await lease.remove(a, never, 1_000);
    expect(keys.has("a")).toBe(false);
    await lease.close(1_000);
    expect([revoked, retired]).toEqual([1, 1]);
  });

  it("lets a lease run out that somebody may lead by", async () => {
    follow();
    held("a");
    await lease.close(1_000);
    expect([revoked, retired, clock.timers]).toEqual([0, 1, 0]);
  });
});
