/** Transactions of many candidates, sent as one: each gets its own answer, and a refusal of one is not that of all. */
import { describe, expect, it } from "vitest";
import type { CallLimits, EtcdClient, Transaction } from "../../src/backends/etcd/client.js";
import { EtcdError } from "../../src/backends/etcd/client/errors.js";
import { CombinedTransactions } from "../../src/backends/etcd/combined-transactions.js";
import { StopSource } from "../../src/kit/stop.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";
import { until } from "../support/until.js";

interface Sent {
  readonly transaction: Transaction;
  readonly limits: CallLimits;
  /** Every range finds the very key that it asks for. */
  answer(succeeded?: boolean): void;
  fail(error: Error): void;
}

/** Requests wait until they are answered by hand. */
function table() {
  const sent: Sent[] = [];
  const clock = new VirtualClock();
  const client: Pick<EtcdClient, "transaction"> = {
    transaction: (transaction, limits) =>
      new Promise((resolve, reject) => {
        limits.signal.addEventListener("abort", () => reject(limits.signal.reason));
        const answer = (succeeded = true): void => {
          const ran = succeeded ? transaction.then : transaction.otherwise;
          const results = ran.map(({ kind, key }) => ({
            kvs: kind === "range" ? [{ key, value: "", createRevision: 5n, modRevision: 5n, lease: 7n }] : [],
          }));
          resolve({ revision: 5n, raftTerm: 1n, succeeded, results });
        };
        sent.push({ transaction, limits, answer, fail: reject });
      }),
  };
  return { sent, clock, combined: new CombinedTransactions(client as EtcdClient, clock) };
}

/** One candidate joins: two operations. */
const join = (n: number): Transaction => ({
  when: [{ target: "create", key: `e${n}/7`, value: 0n }],
  then: [
    { kind: "put", key: `e${n}/7`, value: "" },
    { kind: "range", key: `e${n}/` },
  ],
  otherwise: [{ kind: "range", key: `taken${n}` }],
});
const LIMITS: CallLimits = { signal: new StopSource(), limitMs: 1_000 };
const keysOf = ({
  results,
}: {
  readonly results: readonly { readonly kvs: readonly { readonly key: string }[] }[];
}) => results.flatMap(({ kvs }) => kvs.map(({ key }) => key));

describe("etcd: combined transactions", () => {
  it("sends those of one turn together, and gives each its own results", async () => {
    const { sent, clock, combined } = table();
    const asked = [1, 2, 3].map((n) => combined.ask(join(n), LIMITS));
    expect(sent.length).toBe(0);
    await until(() => sent.length > 0);
    expect(sent.map(({ transaction }) => [transaction.when.length, transaction.then.length])).toEqual([
      [3, 6],
    ]);
    sent[0]!.answer();
    expect((await Promise.all(asked)).map(keysOf)).toEqual([["e1/"], ["e2/"], ["e3/"]]);
    expect(clock.timers).toBe(0);
  });

  it("never puts more operations into one than etcd takes", async () => {
    const { sent, combined } = table();
    const asked = Array.from({ length: 130 }, (_, n) => combined.ask(join(n), LIMITS));
    await until(() => sent.length === 3);
    expect(sent.map(({ transaction }) => transaction.then.length)).toEqual([120, 120, 20]);
    for (const each of sent) each.answer();
    expect((await Promise.all(asked)).map((answer) => keysOf(answer)[0])).toEqual(
      asked.map((_, n) => `e${n}/`),
    );
  });

  it("has a limited number under way, however many join at once: the next goes when one has ended", async () => {
    const { sent, clock, combined } = table();
    const asked = Array.from({ length: 60 * 40 }, (_, n) => combined.ask(join(n), LIMITS));
    await until(() => sent.length === 16);
    await clock.advance(100);
    expect(sent.length).toBe(16);
    for (let answered = 0; answered < 40; answered++) {
      await until(() => sent.length > answered);
      sent[answered]!.answer();
      await until(() => sent.length === Math.min(40, answered + 17));
    }
    expect((await Promise.all(asked)).map((answer) => keysOf(answer)[0])).toEqual(
      asked.map((_, n) => `e${n}/`),
    );
    expect(clock.timers).toBe(0);
  });

  it("sends each alone if a comparison fails: nothing was written, and only one of them is concerned", async () => {
    const { sent, combined } = table();
    const asked = [1, 2].map((n) => combined.ask(join(n), LIMITS));
    await until(() => sent.length === 1);
    sent[0]!.answer(false);
    await until(() => sent.length === 3);
    sent[1]!.answer(false);
    sent[2]!.answer(true);
    const [refused, joined] = await Promise.all(asked);
    expect([refused!.succeeded, keysOf(refused!)]).toEqual([false, ["taken1"]]);
    expect([joined!.succeeded, keysOf(joined!)]).toEqual([true, ["e2/"]]);
  });

  it("sends each alone if etcd refuses all; an unknown outcome is unknown for all, and nothing is sent again", async () => {
    const { sent, combined } = table();
    const refused = [1, 2].map((n) => combined.ask(join(n), LIMITS));
    await until(() => sent.length === 1);
    sent[0]!.fail(new EtcdError("permanent", "forbidden", "no"));
    await until(() => sent.length === 3);
    sent[1]!.fail(new EtcdError("permanent", "forbidden", "no"));
    sent[2]!.answer();
    await expect(refused[0]).rejects.toThrow("no");
    expect(keysOf(await refused[1]!)).toEqual(["e2/"]);

    const unknown = [3, 4].map((n) => combined.ask(join(n), LIMITS));
    await until(() => sent.length === 4);
    sent[3]!.fail(new EtcdError("retriable", "unavailable", "lost"));
    for (const each of await Promise.allSettled(unknown)) expect(each.status).toBe("rejected");
    expect(sent.length).toBe(4);
  });

  it("leaves out whoever cancels before it is sent; stops a request that nobody waits for", async () => {
    const { sent, combined } = table();
    const [early, late, last] = [new StopSource(), new StopSource(), new StopSource()];
    let sending = "";
    const ask = (n: number, signal: StopSource) =>
      combined.ask(join(n), { signal, limitMs: 1_000 }, () => {
        sending += n;
      });
    const asked = Promise.allSettled([ask(1, early), ask(2, late), ask(3, last)]);
    early.stop(new Error("early"));
    await until(() => sent.length === 1);
    expect(sending).toBe("23");
    expect(sent[0]!.transaction.when.length).toBe(2);
    late.stop(new Error("late"));
    expect(sent[0]!.limits.signal.aborted).toBe(false);
    last.stop(new Error("last"));
    expect(sent[0]!.limits.signal.aborted).toBe(true);
    expect((await asked).map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
  });

  it("while four are under way, others wait for one of them to end, and no longer than 20 ms", async () => {
    const { sent, clock, combined } = table();
    for (let n = 1; n <= 4; n++) {
      void combined.ask(join(n), LIMITS);
      await until(() => sent.length === n);
    }
    const others = [5, 6].map((n) => combined.ask(join(n), LIMITS));
    await until(() => clock.timers === 1);
    expect(sent.length).toBe(4);
    sent[0]!.answer();
    await until(() => sent.length === 5);
    expect(sent[4]!.transaction.when.length).toBe(2);
    expect(clock.timers).toBe(0);
    sent[4]!.answer();
    await Promise.all(others);
  });
});
