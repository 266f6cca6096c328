/** Which keys of etcd are elections, by layout. The real server is asked by the conformance suite. */
import { describe, expect, it } from "vitest";
import { listElections } from "../../src/backends/etcd/list.js";
import { Keys } from "../../src/backends/etcd/keys.js";
import type { EtcdClient, KeyValue, Transaction } from "../../src/backends/etcd/client.js";

const limits = { signal: new AbortController().signal, limitMs: 1_000 };

/** Answers ranges from these keys; nothing else is asked. */
function clientOf(keys: readonly string[], lease = 7n): { client: EtcdClient; asked: () => number } {
  const sorted = [...keys].sort();
  let asked = 0;
  const client: Partial<EtcdClient> = {
    transaction: async ({ then }: Transaction) => {
      asked++;
      const [range] = then;
      if (range?.kind !== "range") throw new Error("only ranges are expected");
      const { key, rangeEnd = "", limit = Infinity } = range;
      const kvs = sorted
        .filter((one) => one >= key && (rangeEnd === "\0" || one < rangeEnd))
        .slice(0, limit)
        .map((one): KeyValue => ({ key: one, value: "", createRevision: 1n, modRevision: 1n, lease }));
      return { succeeded: true, revision: 1n, raftTerm: 1n, results: [{ kvs }] };
    },
  };
  return { client: client as EtcdClient, asked: () => asked };
}

describe("elections in etcd", () => {
  const keys = new Keys("app/");

  it("are the names of queues, without records, identities and other keys", async () => {
    const { client } = clientOf([
      "app/jobs/1a",
      "app/jobs/2b",
      "app/a/b/3c",
      "app/jobs/not-a-lease",
      "app/conclave.records/jobs",
      "app/conclave.candidates/1a/jobs",
      "other/jobs/1a",
    ]);
    expect(await listElections(client, keys, (key) => keys.queueOf(key), limits)).toEqual({
      names: ["a/b", "jobs"],
      complete: true,
    });
  });

  it("are single keys in the other layout; a key without a lease is nobody's", async () => {
    const { client } = clientOf(["app/jobs", "app/mail", "app/conclave.records/jobs"]);
    expect((await listElections(client, keys, (key) => keys.nameOf(key), limits)).names).toEqual([
      "jobs",
      "mail",
    ]);
    const loose = clientOf(["app/jobs"], 0n).client;
    expect((await listElections(loose, keys, (key) => keys.nameOf(key), limits)).names).toEqual([]);
  });

  it("come in pages, to a limit that is told", async () => {
    const few = clientOf(Array.from({ length: 2_500 }, (_, index) => `app/n${index}/1a`));
    const all = await listElections(few.client, keys, (key) => keys.queueOf(key), limits);
    expect([all.names.length, all.complete, few.asked()]).toEqual([2_500, true, 3]);
    const crowd = clientOf(Array.from({ length: 11_000 }, (_, index) => `app/n${index}/1a`));
    const cut = await listElections(crowd.client, keys, (key) => keys.queueOf(key), limits);
    expect([cut.names.length, cut.complete]).toEqual([10_000, false]);
  });

  it("without a prefix are looked for among all keys", async () => {
    const root = new Keys("");
    const { client } = clientOf(["jobs/1a", "z/2b"]);
    expect((await listElections(client, root, (key) => root.queueOf(key), limits)).names).toEqual([
      "jobs",
      "z",
    ]);
  });
});
