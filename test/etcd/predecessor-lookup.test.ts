/** Predecessor lookups: the first is sent at once, many are sent together. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { CallLimits, EtcdClient, KeyValue, Transaction } from "../../src/backends/etcd/client.js";
import { EtcdError } from "../../src/backends/etcd/client/errors.js";
import type { GrpcEtcdClient } from "../../src/backends/etcd/client/grpc-client.js";
import { etcdBackend } from "../../src/backends/etcd/index.js";
import { CandidateKey } from "../../src/backends/etcd/candidate-key.js";
import { PredecessorLookup } from "../../src/backends/etcd/predecessor-lookup.js";
import { Election } from "../../src/election/election.js";
import { StopSource } from "../../src/kit/stop.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";
import { Bench } from "../support/contest.js";
import { EtcdServer, hasEtcd } from "../support/etcd-server.js";
import { until } from "../support/until.js";

type Answer = { readonly results: readonly { readonly kvs: readonly KeyValue[] }[] };

/** A transaction under way: what was asked, and how the test ends it. */
interface Sent {
  readonly transaction: Transaction;
  readonly limits: CallLimits;
  answer(answer: Answer): void;
  fail(error: Error): void;
}

/** Requests wait until they are answered by hand. */
function table(): {
  readonly sent: Sent[];
  readonly lookup: PredecessorLookup;
  readonly clock: VirtualClock;
} {
  const sent: Sent[] = [];
  const clock = new VirtualClock();
  const client: Pick<EtcdClient, "transaction"> = {
    transaction: (transaction, limits) =>
      new Promise((resolve, reject) => {
        limits.signal.addEventListener("abort", () => reject(limits.signal.reason));
        sent.push({
          transaction,
          limits,
          answer: ({ results }) => resolve({ revision: 99n, raftTerm: 1n, succeeded: true, results }),
          fail: reject,
        });
      }),
  };
  return { sent, clock, lookup: new PredecessorLookup(client as EtcdClient, clock) };
}

const kv = (key: string, createRevision: bigint): KeyValue => ({
  ...{ key, createRevision, modRevision: createRevision, value: "", lease: 7n },
});
const found = (...kvs: KeyValue[]): { kvs: KeyValue[] } => ({ kvs });

function ask(lookup: PredecessorLookup, n: number, limits: Partial<CallLimits> = {}) {
  const owner = {
    id: 7n,
    forget: () => {},
    transactions: { ask: () => Promise.reject(new Error("not asked here")) },
  };
  const client = { watch: () => () => {} } as unknown as EtcdClient;
  const candidateKey = new CandidateKey(client, owner, `e${n}/7`, { election: `e${n}`, candidate: "me" });
  candidateKey.created(BigInt(n));
  const queue = { key: `e${n}/`, rangeEnd: `e${n}0` };
  const answer = lookup.find(candidateKey, BigInt(n), queue, {
    signal: new StopSource(),
    limitMs: 1_000,
    ...limits,
  });
  answer.catch(() => {});
  return { candidateKey, answer };
}

/** What an honest server says to each: your key is there, and this one is before you. */
function honest({ transaction }: Sent): Answer {
  const results = transaction.then.map((operation, i) => {
    const n = Number(/^e(\d+)/.exec(operation.key)?.[1]);
    return i % 2 === 0 ? found(kv(`e${n}/7`, BigInt(n))) : found(kv(`e${n}/${n}`, 1n));
  });
  return { results };
}

describe("etcd: predecessor lookup", () => {
  it("sends the first at once; those that ask meanwhile together, each with its own answer", async () => {
    const { sent, lookup, clock } = table();
    const first = ask(lookup, 11);
    const others = [12, 13, 14].map((n) => ask(lookup, n));
    expect(sent.map(({ transaction }) => transaction.then.length)).toEqual([2]);
    sent[0]!.answer(honest(sent[0]!));
    expect((await first.answer)?.key).toBe("e11/11");
    await until(() => sent.length === 2);
    expect(sent[1]!.transaction.then.length).toBe(6);
    sent[1]!.answer(honest(sent[1]!));
    const keys = (await Promise.all(others.map(({ answer }) => answer))).map(
      (predecessor) => predecessor?.key,
    );
    expect(keys).toEqual(["e12/12", "e13/13", "e14/14"]);
    expect(clock.timers).toBe(0);
  });

  it("asks about our own key at the same instant: whose is gone, or another's, does not lead", async () => {
    const { sent, lookup } = table();
    void ask(lookup, 1);
    const [gone, replaced, fine] = [ask(lookup, 2), ask(lookup, 3), ask(lookup, 4)];
    sent[0]!.answer(honest(sent[0]!));
    await until(() => sent.length === 2);
    sent[1]!.answer({
      results: [found(), found(), found(kv("e3/7", 30n)), found(), found(kv("e4/7", 4n)), found()],
    });
    await expect(gone.answer).rejects.toThrow("its key is gone");
    await expect(replaced.answer).rejects.toThrow("its key is gone");
    expect(await fine.answer).toBe(undefined);
    expect([gone.candidateKey.aborted, replaced.candidateKey.aborted, fine.candidateKey.aborted]).toEqual([
      true,
      true,
      false,
    ]);
  });

  it("does not take an answer that is cut short for a loss", async () => {
    const { sent, lookup } = table();
    const { candidateKey, answer } = ask(lookup, 1);
    sent[0]!.answer({ results: [] });
    await expect(answer).rejects.toMatchObject({ code: "unavailable" });
    expect(candidateKey.aborted).toBe(false);
  });

  it("does not wait long for a slow transaction, and fills no transaction too far", async () => {
    const { sent, lookup, clock } = table();
    void ask(lookup, 1);
    void ask(lookup, 2);
    await clock.advance(19);
    expect(sent.length).toBe(1);
    await clock.advance(1);
    expect(sent.length).toBe(2);
    for (let n = 100; n < 300; n++) void ask(lookup, n);
    expect(sent.slice(2).map(({ transaction }) => transaction.then.length)).toEqual([120, 120, 120]);
    await clock.advance(20);
    expect(sent.at(-1)!.transaction.then.length).toBe(40);
  });

  it("keeps apart those with less patience", async () => {
    const { sent, lookup } = table();
    void ask(lookup, 1);
    [30, 2_500, 30].forEach((limitMs, i) => ask(lookup, i + 2, { limitMs }));
    sent[0]!.answer(honest(sent[0]!));
    await until(() => sent.length === 3);
    const sizes = sent.slice(1).map(({ transaction, limits }) => [limits.limitMs, transaction.then.length]);
    expect(sizes).toEqual([
      [30, 4],
      [2_500, 2],
    ]);
  });

  it("forgets who leaves: in the line, on the way, and when nobody is left", async () => {
    const { sent, lookup, clock } = table();
    const stops = [1, 2, 3, 4].map(() => new StopSource());
    const why = new Error("enough");
    const [first, second, third, last] = stops.map((signal, i) => ask(lookup, i + 1, { signal }));
    stops[1]!.stop(why); // in the line
    await expect(second!.answer).rejects.toBe(why);
    sent[0]!.answer(honest(sent[0]!));
    await first!.answer;
    await until(() => sent.length === 2);
    expect(sent[1]!.transaction.then.length).toBe(4);
    stops[2]!.stop(why); // on the way, with another
    await expect(third!.answer).rejects.toBe(why);
    expect(sent[1]!.limits.signal.aborted).toBe(false);
    stops[3]!.stop(why); // the last one takes the request with it
    await expect(last!.answer).rejects.toBe(why);
    expect(sent[1]!.limits.signal.aborted).toBe(true);
    void ask(lookup, 5);
    const alone = new StopSource();
    const left = ask(lookup, 6, { signal: alone });
    expect(clock.timers).toBe(1);
    alone.stop(why);
    await expect(left.answer).rejects.toBe(why);
    expect(clock.timers).toBe(0);
    const before = ask(lookup, 7, { signal: alone }); // gone before it came
    await expect(before.answer).rejects.toBe(why);
  });

  it("tells all of a passing fault; after a refusal each asks for itself", async () => {
    const { sent, lookup } = table();
    const start = (): ReturnType<typeof ask>[] => [1, 2, 3].map((n) => ask(lookup, n));
    const passing = new EtcdError("retriable", "unavailable", "for a while");
    const [first, ...others] = start();
    sent[0]!.fail(passing);
    await expect(first!.answer).rejects.toBe(passing);
    await until(() => sent.length === 2);
    sent[1]!.fail(passing);
    for (const { answer } of others) await expect(answer).rejects.toBe(passing);

    const refusal = new EtcdError("permanent", "forbidden", "not this one");
    const [, allowed, forbidden] = start();
    sent[2]!.answer(honest(sent[2]!));
    await until(() => sent.length === 4);
    sent[3]!.fail(refusal);
    await until(() => sent.length === 6);
    sent[4]!.answer(honest(sent[4]!));
    sent[5]!.fail(refusal);
    expect((await allowed!.answer)?.key).toBe("e2/2");
    await expect(forbidden!.answer).rejects.toBe(refusal);
    expect(sent.length).toBe(6);
  });
});

describe.skipIf(!hasEtcd())("etcd: many lookups at once", () => {
  const ELECTIONS = 300;
  const TTL = 60_000;
  const bench = new Bench();
  const limits = { signal: new AbortController().signal, limitMs: 5_000 };
  let server: EtcdServer;
  let client: GrpcEtcdClient;

  beforeAll(async () => {
    server = await EtcdServer.start();
    client = server.client();
  });
  afterEach(() => bench.cleanUp());
  afterAll(async () => {
    await client[Symbol.asyncDispose]();
    await server.stop();
  });

  function elections(): Election[] {
    const backend = etcdBackend({ endpoints: server.endpoints, env: {} });
    bench.onEnd(async () => backend[Symbol.asyncDispose]());
    return Array.from({ length: ELECTIONS }, (_, i) => {
      const election = new Election({ name: `many/${i}`, backend, ttlMs: TTL });
      bench.onEnd(() => election.close());
      return election;
    });
  }

  it("the end of one lease makes the next process lead them all, with far fewer sent", async () => {
    const before = await Promise.all(elections().map((election) => election.campaign()));
    const waiting = Promise.all(elections().map((election) => election.campaign()));
    const asked = (): Promise<number> =>
      server.counted("grpc_server_handled_total", 'grpc_method="Txn"', 'grpc_code="OK"');
    const keys = { key: "many/", rangeEnd: "many0", keysOnly: true };
    await until(async () => (await client.range(keys, limits)).length === 2 * ELECTIONS, 30_000);
    const sent = await asked();
    const [leader] = await client.range(
      { key: "many/0/", rangeEnd: "many/00", sort: "oldest-first" },
      limits,
    );
    await client.leaseRevoke(leader!.lease, limits);
    const after = await waiting;
    const took = (await asked()) - sent;
    expect(after.every((term, i) => term.held && term.token > before[i]!.token)).toBe(true);
    expect(took).toBeLessThan(ELECTIONS / 2);
  });
});
