/** What a renewal concludes from the keys that it reads: against answers that the test makes. */
import { beforeEach, describe, expect, it } from "vitest";
import { CandidateKey } from "../../src/backends/etcd/candidate-key.js";
import type {
  EtcdClient,
  Operation,
  Transaction,
  TransactionAnswer,
} from "../../src/backends/etcd/client.js";
import { inTurn, verifyKeys } from "../../src/backends/etcd/verify-keys.js";
import { ConclaveError } from "../../src/kit/errors.js";

const limits = { signal: new AbortController().signal, limitMs: 1_000 };
const extension = { asked: { now: 5, wall: 5, boot: 5 } };
const RAFT_TERM = 3n;
/** Operations in one transaction at most. */
const MOST_OPERATIONS = 120;

let sent: Operation[][];
let connection: object;
/** Revision of the nth answer. */
let revisionOf: (nth: number) => bigint;
/** Create revision of a key in the store; `undefined`: it is not there. */
let created: (key: string) => bigint | undefined;
let raftTerm: bigint;
let refuse: (keys: readonly string[]) => Error | undefined;
let denied: [string, unknown][];

beforeEach(() => {
  sent = [];
  connection = {};
  revisionOf = () => 50n;
  created = () => 10n;
  raftTerm = RAFT_TERM;
  refuse = () => undefined;
  denied = [];
});

const keysOf = (operations: readonly Operation[]): string[] => operations.map(({ key }) => key);

const unused = (): never => {
  throw new Error("not asked for");
};
const client: EtcdClient = {
  leaseGrant: unused,
  leaseKeepAlive: unused,
  leaseRevoke: unused,
  watch: () => () => {},
  transaction: async ({ then }: Transaction): Promise<TransactionAnswer> => {
    sent.push([...then]);
    const revision = revisionOf(sent.length);
    const error = refuse(keysOf(then));
    if (error !== undefined) throw error;
    const results = keysOf(then).map((key) => {
      const createRevision = created(key);
      if (createRevision === undefined) return { kvs: [] };
      return { kvs: [{ key, value: "", createRevision, modRevision: createRevision, lease: 1n }] };
    });
    return { succeeded: true, results, revision, raftTerm, connection };
  },
  [Symbol.asyncDispose]: async () => {},
};

const forgotten: CandidateKey[] = [];
function candidates(count: number): CandidateKey[] {
  forgotten.length = 0;
  return Array.from({ length: count }, (_, i) => {
    const owner = {
      id: 1n,
      transactions: { ask: () => Promise.reject(new Error("not asked here")) },
      forget: (key: CandidateKey) => void forgotten.push(key),
    };
    const key = new CandidateKey(client, owner, `k${i}`, { election: `e${i}`, candidate: "c" });
    key.created(10n);
    key.state = "held";
    return key;
  });
}

const verify = (keys: readonly CandidateKey[], over = {}): ReturnType<typeof verifyKeys> =>
  verifyKeys(client, keys, "any", {
    ...{ raftTerm: RAFT_TERM, extension, limits },
    denied: (key, error) => void denied.push([key.key, error]),
    ...over,
  });

describe("keys that are read", () => {
  it("count, each by itself; the revision is the lowest of all answers, in whatever order they come", async () => {
    const keys = candidates(300);
    for (const lowest of [1, 2, 3]) {
      sent = [];
      for (const key of keys) key.seen = undefined;
      revisionOf = (nth) => (nth === lowest ? 40n : 50n);
      expect(await verify(keys)).toEqual({ present: 300, revision: 40n });
      expect(sent.length).toBeGreaterThanOrEqual(3);
    }
    expect(keys.every((key) => key.extension === extension)).toBe(true);
  });

  it("go into as few transactions as etcd takes, none of them too large, and each once", async () => {
    await verify(candidates(300));
    const all = sent.flatMap(keysOf);
    expect([all.length, new Set(all).size]).toEqual([300, 300]);
    expect(Math.max(...sent.map((operations) => operations.length))).toBe(MOST_OPERATIONS);
    expect(sent).toHaveLength(4); // three first, then 120, 120 and 57
  });

  it("are lost if they are gone or another's, at whatever revision; the others are not", async () => {
    const keys = candidates(5);
    created = (key) => (key === "k1" ? undefined : key === "k3" ? 11n : 10n);
    revisionOf = () => 2n;
    expect((await verify(keys)).present).toBe(3);
    expect(forgotten.map(({ key }) => key)).toEqual(["k1", "k3"]);
    expect(keys.map((key) => key.extension === extension)).toEqual([true, false, true, false, true]);
    expect(keys.map((key) => key.lost !== undefined)).toEqual([false, true, false, true, false]);
  });

  it("are not extended, only counted, if the lease is denied", async () => {
    const keys = candidates(3);
    expect((await verify(keys, { extension: undefined })).present).toBe(3);
    expect(keys.map((key) => key.extension)).toEqual([undefined, undefined, undefined]);
  });

  it("are none: some key is read all the same, for the revision", async () => {
    expect(await verify([])).toEqual({ present: 0, revision: 50n });
    expect(sent.map(keysOf)).toEqual([["any"]]);
  });
});

describe("answers that do not count", () => {
  it("are those of another raft term, and those cut short", async () => {
    const keys = candidates(2);
    raftTerm = RAFT_TERM + 1n;
    await expect(verify(keys)).rejects.toMatchObject({ code: "unavailable" });
    expect(keys.map((key) => [key.extension, key.lost])).toEqual([
      [undefined, undefined],
      [undefined, undefined],
    ]);
  });

  it("to one part are a failure of the whole, after the others were dealt with", async () => {
    const keys = candidates(300);
    refuse = (asked) => (asked.includes("k200") ? new ConclaveError("unavailable", "away") : undefined);
    await expect(verify(keys)).rejects.toThrow("away");
    expect(keys[0]?.extension).toBe(extension);
    expect(keys[299]?.extension).toBe(extension);
    expect(keys[200]?.extension).toBeUndefined();
  });
});

describe("a store to which nobody writes", () => {
  it("is asked about a hundredth of the keys, and the others are extended by what was seen", async () => {
    const keys = candidates(300);
    await verify(keys);
    sent = [];
    for (const key of keys) key.extension = undefined;
    expect(await verify(keys)).toEqual({ present: 300, revision: 50n });
    expect(sent.map((operations) => operations.length)).toEqual([3]);
    expect(keys.every((key) => key.extension === extension)).toBe(true);
  });

  it.each<[string, () => void]>([
    ["the revision is another, even a lower one", () => (revisionOf = () => 49n)],
    ["it answers on another connection", () => (connection = {})],
  ])("is asked about all of them if %s", async (_, change) => {
    const keys = candidates(300);
    await verify(keys);
    sent = [];
    change();
    await verify(keys);
    expect(sent.flat()).toHaveLength(300);
  });

  it("is asked about a key that waits for another one than before", async () => {
    const keys = candidates(300);
    await verify(keys);
    sent = [];
    keys[250]!.predecessor = { key: "ahead", createRevision: 10n };
    await verify(keys);
    expect(sent.flatMap(keysOf)).toEqual(["k0", "k1", "k2", "k250", "ahead"]);
  });

  it("has every key read within a hundred renewals", () => {
    const keys = candidates(250);
    const read = new Set<CandidateKey>();
    for (let round = 0; round < 100; round++)
      for (const key of inTurn(keys, round).slice(0, Math.ceil(keys.length / 100))) read.add(key);
    expect(read.size).toBe(250);
    expect(inTurn([], 7)).toEqual([]);
  });
});

describe("a refusal", () => {
  const forbidden = (): ConclaveError => new ConclaveError("forbidden", "not this one");

  it("of one key is that key's alone: all others are asked for by themselves, and count", async () => {
    const keys = candidates(5);
    refuse = (asked) => (asked.includes("k2") ? forbidden() : undefined);
    expect(await verify(keys)).toMatchObject({ present: 4 });
    expect(denied.map(([key]) => key)).toEqual(["k2"]);
    expect(keys.map((key) => key.extension === extension)).toEqual([true, true, false, true, true]);
    expect(keys[2]?.lost).toBeUndefined();
  });

  it("of all of them is a failure, and each is told", async () => {
    refuse = forbidden;
    await expect(verify(candidates(3))).rejects.toMatchObject({ code: "forbidden" });
    expect(new Set(denied.map(([key]) => key))).toEqual(new Set(["k0", "k1", "k2"]));
  });

  it("is forgotten once the key was read", async () => {
    const [key] = candidates(1);
    key!.denials = 1;
    await verify([key!]);
    expect(key!.denials).toBe(0);
  });
});
