/** Whose turn it is: one seat looked at without delay, many of them together. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { CallLimits, EtcdClient, KeyValue, Transaction } from "../../src/backends/etcd/client.js";
import { EtcdError } from "../../src/backends/etcd/client/errors.js";
import type { GrpcEtcdClient } from "../../src/backends/etcd/client/grpc-client.js";
import { etcdBackend } from "../../src/backends/etcd/index.js";
import { Seat } from "../../src/backends/etcd/seat.js";
import { Turns } from "../../src/backends/etcd/turns.js";
import { Election } from "../../src/election/election.js";
import { Halt } from "../../src/kit/stop.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";
import { Bench } from "../support/contest.js";
import { EtcdServer, hasEtcd } from "../support/etcd-server.js";
import { until } from "../support/until.js";

type Answer = { readonly results: readonly { readonly kvs: readonly KeyValue[] }[] };

/** A look under way: what was asked, and the end that the test gives it. */
interface Look {
  readonly transaction: Transaction;
  readonly limits: CallLimits;
  answer(answer: Answer): void;
  fail(error: Error): void;
}

/** Requests wait until they are answered by hand. */
function table(): { readonly looks: Look[]; readonly turns: Turns; readonly clock: VirtualClock } {
  const looks: Look[] = [];
  const clock = new VirtualClock();
  const client: Pick<EtcdClient, "transaction"> = {
    transaction: (transaction, limits) =>
      new Promise((resolve, reject) => {
        limits.signal.addEventListener("abort", () => reject(limits.signal.reason));
        looks.push({
          transaction,
          limits,
          answer: ({ results }) => resolve({ revision: 99n, raftTerm: 1n, succeeded: true, results }),
          fail: reject,
        });
      }),
  };
  return { looks, clock, turns: new Turns(client as EtcdClient, clock) };
}

const kv = (key: string, createRevision: bigint): KeyValue => ({
  ...{ key, createRevision, modRevision: createRevision, value: "", lease: 7n },
});
const found = (...kvs: KeyValue[]): { kvs: KeyValue[] } => ({ kvs });

function ask(turns: Turns, n: number, limits: Partial<CallLimits> = {}) {
  const owner = { id: 7n, forget: () => {} };
  const client = { watch: () => () => {} } as unknown as EtcdClient;
  const seat = new Seat(client, owner, `e${n}/7`, { election: `e${n}`, candidate: "me" });
  seat.entered(BigInt(n));
  const queue = { key: `e${n}/`, rangeEnd: `e${n}0` };
  const answer = turns.ahead(seat, BigInt(n), queue, { signal: new Halt(), limitMs: 1_000, ...limits });
  answer.catch(() => {});
  return { seat, answer };
}

/** What an honest server says to each: your key is there, and this one is before you. */
function honest({ transaction }: Look): Answer {
  const results = transaction.then.map((operation, i) => {
    const n = Number(/^e(\d+)/.exec(operation.key)?.[1]);
    return i % 2 === 0 ? found(kv(`e${n}/7`, BigInt(n))) : found(kv(`e${n}/${n}`, 1n));
  });
  return { results };
}

describe("etcd: turns", () => {
  it("looks for one at once; for those who ask meanwhile together, each with its own answer", async () => {
    const { looks, turns, clock } = table();
    const first = ask(turns, 11);
    const others = [12, 13, 14].map((n) => ask(turns, n));
    expect(looks.map(({ transaction }) => transaction.then.length)).toEqual([2]);
    looks[0]!.answer(honest(looks[0]!));
    expect((await first.answer)?.key).toBe("e11/11");
    await until(() => looks.length === 2);
    expect(looks[1]!.transaction.then.length).toBe(6);
    looks[1]!.answer(honest(looks[1]!));
    const keys = (await Promise.all(others.map(({ answer }) => answer))).map((ahead) => ahead?.key);
    expect(keys).toEqual(["e12/12", "e13/13", "e14/14"]);
    expect(clock.timers).toBe(0);
  });

  it("asks about our own key at the same instant: whose is gone, or another's, does not lead", async () => {
    const { looks, turns } = table();
    void ask(turns, 1);
    const [gone, replaced, fine] = [ask(turns, 2), ask(turns, 3), ask(turns, 4)];
    looks[0]!.answer(honest(looks[0]!));
    await until(() => looks.length === 2);
    looks[1]!.answer({
      results: [found(), found(), found(kv("e3/7", 30n)), found(), found(kv("e4/7", 4n)), found()],
    });
    await expect(gone.answer).rejects.toThrow("its key is gone");
    await expect(replaced.answer).rejects.toThrow("its key is gone");
    expect(await fine.answer).toBe(undefined);
    expect([gone.seat.aborted, replaced.seat.aborted, fine.seat.aborted]).toEqual([true, true, false]);
  });

  it("does not take an answer that is cut short for a loss", async () => {
    const { looks, turns } = table();
    const { seat, answer } = ask(turns, 1);
    looks[0]!.answer({ results: [] });
    await expect(answer).rejects.toMatchObject({ code: "unavailable" });
    expect(seat.aborted).toBe(false);
  });

  it("waits for no slow look longer than a moment, and fills no transaction too far", async () => {
    const { looks, turns, clock } = table();
    void ask(turns, 1);
    void ask(turns, 2);
    await clock.advance(19);
    expect(looks.length).toBe(1);
    await clock.advance(1);
    expect(looks.length).toBe(2);
    for (let n = 100; n < 300; n++) void ask(turns, n);
    expect(looks.slice(2).map(({ transaction }) => transaction.then.length)).toEqual([120, 120, 120]);
    await clock.advance(20);
    expect(looks.at(-1)!.transaction.then.length).toBe(40);
  });

  it("keeps apart those with less patience", async () => {
    const { looks, turns } = table();
    void ask(turns, 1);
    [30, 2_500, 30].forEach((limitMs, i) => ask(turns, i + 2, { limitMs }));
    looks[0]!.answer(honest(looks[0]!));
    await until(() => looks.length === 3);
    const sent = looks.slice(1).map(({ transaction, limits }) => [limits.limitMs, transaction.then.length]);
    expect(sent).toEqual([
      [30, 4],
      [2_500, 2],
    ]);
  });

  it("forgets who leaves: in the line, on the way, and when nobody is left", async () => {
    const { looks, turns, clock } = table();
    const stops = [1, 2, 3, 4].map(() => new Halt());
    const why = new Error("enough");
    const [first, second, third, last] = stops.map((signal, i) => ask(turns, i + 1, { signal }));
    stops[1]!.halt(why); // in the line
    await expect(second!.answer).rejects.toBe(why);
    looks[0]!.answer(honest(looks[0]!));
    await first!.answer;
    await until(() => looks.length === 2);
    expect(looks[1]!.transaction.then.length).toBe(4);
    stops[2]!.halt(why); // on the way, with another
    await expect(third!.answer).rejects.toBe(why);
    expect(looks[1]!.limits.signal.aborted).toBe(false);
    stops[3]!.halt(why); // the last one takes the request with it
    await expect(last!.answer).rejects.toBe(why);
    expect(looks[1]!.limits.signal.aborted).toBe(true);
    void ask(turns, 5);
    const alone = new Halt();
    const left = ask(turns, 6, { signal: alone });
    expect(clock.timers).toBe(1);
    alone.halt(why);
    await expect(left.answer).rejects.toBe(why);
    expect(clock.timers).toBe(0);
    const before = ask(turns, 7, { signal: alone }); // gone before it came
    await expect(before.answer).rejects.toBe(why);
  });

  it("tells all of a passing fault; after a refusal each asks for itself", async () => {
    const { looks, turns } = table();
    const start = (): ReturnType<typeof ask>[] => [1, 2, 3].map((n) => ask(turns, n));
    const passing = new EtcdError("retriable", "unavailable", "for a while");
    const [first, ...others] = start();
    looks[0]!.fail(passing);
    await expect(first!.answer).rejects.toBe(passing);
    await until(() => looks.length === 2);
    looks[1]!.fail(passing);
    for (const { answer } of others) await expect(answer).rejects.toBe(passing);

    const refusal = new EtcdError("permanent", "forbidden", "not this one");
    const [, allowed, forbidden] = start();
    looks[2]!.answer(honest(looks[2]!));
    await until(() => looks.length === 4);
    looks[3]!.fail(refusal);
    await until(() => looks.length === 6);
    looks[4]!.answer(honest(looks[4]!));
    looks[5]!.fail(refusal);
    expect((await allowed!.answer)?.key).toBe("e2/2");
    await expect(forbidden!.answer).rejects.toBe(refusal);
    expect(looks.length).toBe(6);
  });
});

describe.skipIf(!hasEtcd())("etcd: many turns at once", () => {
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

  it("the end of one lease makes the next process lead them all, with far fewer looks", async () => {
    const before = await Promise.all(elections().map((election) => election.campaign()));
    const waiting = Promise.all(elections().map((election) => election.campaign()));
    const asked = (): Promise<number> =>
      server.counted("grpc_server_handled_total", 'grpc_method="Txn"', 'grpc_code="OK"');
    const keys = { key: "many/", rangeEnd: "many0", keysOnly: true };
    await until(async () => (await client.range(keys, limits)).length === 2 * ELECTIONS, 30_000);
    const looks = await asked();
    const [leader] = await client.range(
      { key: "many/0/", rangeEnd: "many/00", sort: "oldest-first" },
      limits,
    );
    await client.leaseRevoke(leader!.lease, limits);
    const after = await waiting;
    const took = (await asked()) - looks;
    expect(after.every((term, i) => term.held && term.token > before[i]!.token)).toBe(true);
    expect(took).toBeLessThan(ELECTIONS / 2);
  });
});
