/** Following the leader, against a client that says what the test says: no server needed. */
import { expect, it } from "vitest";
import type { EtcdClient, KeyValue, WatchNotice } from "../../src/backends/etcd/client.js";
import { observeLeader } from "../../src/backends/etcd/observe.js";
import { systemClock } from "../../src/kit/clock.js";

const kv = (value: string, modRevision: bigint): KeyValue => ({
  key: "e/1",
  value,
  createRevision: 1n,
  modRevision,
  lease: 1n,
});

function stage() {
  let current = kv("first", 1n);
  let sink: (notice: WatchNotice) => void = () => {};
  const unused = (): Promise<never> => Promise.reject(new Error("not used here"));
  const client: EtcdClient = {
    transaction: async () => ({
      revision: current.modRevision,
      raftTerm: 1n,
      succeeded: true,
      results: [{ kvs: [current] }],
    }),
    leaseGrant: unused,
    leaseKeepAlive: unused,
    leaseRevoke: unused,
    watch: (_, listener) => {
      sink = listener;
      return () => {};
    },
    [Symbol.asyncDispose]: async () => {},
  };
  const stop = new AbortController();
  const range = { key: "e/", rangeEnd: "e0" };
  const leaders = observeLeader(
    { client, clock: systemClock, range, identify: async () => "a" },
    { signal: stop.signal, pollMs: 20_000, attemptMs: 1_000 },
  );
  const proclaim = (value: string, modRevision: bigint): void => {
    current = kv(value, modRevision);
    sink({ kind: "events", events: [{ type: "put", kv: current }] });
  };
  /** The key is deleted and made anew. */
  const succeed = (value: string, revision: bigint): void => {
    const gone = current;
    current = { ...kv(value, revision), createRevision: revision };
    sink({ kind: "events", events: [{ type: "delete", kv: gone }] });
    sink({ kind: "events", events: [{ type: "put", kv: current }] });
  };
  return { leaders, stop, proclaim, succeed };
}

it("ends at once if it was told to stop while its reader was busy", async () => {
  const { leaders, stop } = stage();
  expect((await leaders.next()).value).toMatchObject({ value: "first" });
  stop.abort();
  expect(await leaders.next()).toMatchObject({ done: true });
}, 5_000);

it("keeps one value for a reader that does not come, not all of them", async () => {
  const { leaders, stop, proclaim } = stage();
  await leaders.next();
  const second = leaders.next(); // the watch is open from here on
  await new Promise((resolve) => setImmediate(resolve));
  proclaim("2", 2n);
  expect((await second).value).toMatchObject({ value: "2" });
  for (let revision = 3n; revision < 1_000n; revision++) proclaim(revision.toString(), revision);
  expect((await leaders.next()).value).toMatchObject({ value: "999" });
  stop.abort();
  await leaders.return(undefined);
});

it("reads again if another key led between two looks", async () => {
  const { leaders, stop, proclaim, succeed } = stage();
  await leaders.next();
  const second = leaders.next();
  await new Promise((resolve) => setImmediate(resolve));
  proclaim("2", 2n);
  expect((await second).value).toMatchObject({ value: "2" });
  proclaim("3", 3n);
  succeed("successor", 5n);
  expect((await leaders.next()).value).toMatchObject({ value: "successor", token: 5n });
  stop.abort();
  expect(await leaders.next()).toMatchObject({ done: true });
}, 5_000);
