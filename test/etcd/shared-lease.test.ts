/** Several elections of a process share one lease in etcd. What one of them may conclude from it, on virtual time. */
import { afterEach, expect, test } from "vitest";
import type { Election, Term } from "../../src/index.js";
import { EtcdModel } from "../support/etcd-model.js";
import type { ModelProcess } from "../support/etcd-model.js";

let model: EtcdModel;
const start = (ttlMs: number): [ModelProcess, ModelProcess] => {
  model = new EtcdModel();
  return [model.process(ttlMs), model.process(ttlMs)];
};
afterEach(() => model.close());

/** Campaigns while time passes. */
async function lead(election: Election, mostMs = 0): Promise<Term | undefined> {
  const won: Term[] = [];
  const stop = new AbortController();
  election.campaign({ signal: stop.signal }).then(
    (term) => won.push(term),
    () => {},
  );
  for (let ms = 0; won.length === 0 && ms <= mostMs; ms += 50) await model.pass(50);
  if (won.length === 0) stop.abort();
  return won[0];
}

/** The one key of this election. */
const keyOf = (name: string): string => {
  const key = [...model.server.backUp().kvs.keys()].find((each) => each.startsWith(`${name}/`));
  if (key === undefined) throw new Error(`nobody stands in ${name}`);
  return key;
};

test.each([1_000, 3_000, 6_000])(
  "a term that begins after the machine slept %i ms is not timed from a renewal asked for before",
  async (sleptMs) => {
    const [sleeper, other] = start(10_000);
    // Whatever keeps the lease: it was granted just now, and is young by the monotonic clock when the machine wakes.
    expect(await lead(sleeper.election("first"))).toBeDefined();
    await model.suspend(sleeper, sleptMs);
    const term = await lead(sleeper.election("second"));
    expect(term?.held).toBe(true);
    sleeper.cut = true;
    let both = 0;
    let next: Term | undefined;
    void other
      .election("second")
      .campaign()
      .then((won) => (next = won));
    for (let ms = 0; ms < 20_000; ms += 25) {
      await model.pass(25);
      if (term?.held === true && next?.held === true) both += 25;
    }
    expect(next?.held).toBe(true);
    expect(both).toBe(0);
  },
);

test("300 elections: a key that vanishes unnoticed by its watch ends its term at the next renewal, and only its", async () => {
  const [leader, next] = start(6_000);
  leader.deaf = true;
  const elections = Array.from({ length: 300 }, (_, i) => leader.election(`e${i}`));
  const terms = await Promise.all(elections.map((election) => election.campaign()));
  await model.pass(2_000 + 100); // renewed once
  const gone = [0, 61, 137, 255, 299];
  for (const i of gone) model.server.remove(keyOf(`e${i}`));
  const rivals = await Promise.all(gone.map((i) => next.election(`e${i}`).campaign()));
  expect(rivals.every(({ held }) => held)).toBe(true);
  await model.pass(2_000 + 100);
  expect(terms.flatMap(({ held }, i) => (held ? [] : [i]))).toEqual(gone);
  expect(gone.map((i) => terms[i]?.end?.reason)).toEqual(gone.map(() => "revoked"));
});

test("300 elections, nobody writes: a renewal reads a few keys, not all; after a write it reads all again", async () => {
  const [leader, other] = start(6_000);
  const elections = Array.from({ length: 300 }, (_, i) => leader.election(`e${i}`));
  const terms = await Promise.all(elections.map((election) => election.campaign()));
  await model.pass(4_000); // every key was read
  const read = async (ms: number): Promise<number> => {
    const before = leader.transactions;
    await model.pass(ms);
    return leader.transactions - before;
  };
  const quiet = await read(12_000);
  expect(quiet).toBeGreaterThanOrEqual(5);
  expect(quiet).toBeLessThanOrEqual(7); // one in each renewal
  await other.election("elsewhere").campaign();
  expect(await read(2_100)).toBeGreaterThanOrEqual(4);
  expect(terms.filter(({ held }) => !held)).toEqual([]);
});

test("300 elections: a restore to the very same revision ends the terms whose keys it lacks at the next renewal", async () => {
  const [leader] = start(6_000);
  leader.deaf = true;
  const elections = Array.from({ length: 300 }, (_, i) => leader.election(`e${i}`));
  const terms = await Promise.all(elections.map((election) => election.campaign()));
  await model.pass(4_000);
  const backup = model.server.backUp();
  const kvs = new Map(backup.kvs);
  const gone = [1, 150, 298];
  for (const i of gone) kvs.delete(keyOf(`e${i}`));
  model.server.restore({ ...backup, kvs }, backup.revision);
  await model.pass(2_100);
  expect(terms.flatMap(({ held }, i) => (held ? [] : [i]))).toEqual(gone);
});

test("300 elections: all are renewed, time after time, by one lease", async () => {
  const [leader] = start(6_000);
  const elections = Array.from({ length: 300 }, (_, i) => leader.election(`e${i}`));
  const terms = await Promise.all(elections.map((election) => election.campaign()));
  await model.pass(30_000);
  expect(terms.filter(({ held }) => !held)).toEqual([]);
  expect(model.server.backUp().leases).toHaveLength(1);
});

test("a restore brings back a key that was given back: the lease is not kept, and nobody waits for it", async () => {
  const [first, second] = start(6_000);
  const kept = await lead(first.election("kept"));
  const old = await lead(first.election("old"));
  const backup = model.server.backUp();
  await old?.resign();
  for (const value of ["1", "2", "3"]) await kept?.proclaim(value);
  await model.pass(2_100);
  expect(kept?.held).toBe(true);
  model.server.restore(backup);
  await model.pass(2_100);
  expect(kept?.end?.reason).toBe("revoked");
  expect(await lead(second.election("old"), 1_000)).toBeDefined();
});

test.each([26_000, 28_000, 29_500])(
  "an event loop that was blocked for %i of 30 s loses its term, and the next leader comes when the lease would have ended",
  async (blockedMs) => {
    const [blocked, other] = start(30_000);
    const term = await lead(blocked.election("e"));
    expect(await lead(blocked.election("beside"))).toBeDefined();
    let next: Term | undefined;
    void other
      .election("e")
      .campaign()
      .then((won) => (next = won));
    await model.block(blocked, blockedMs);
    expect(term?.held).toBe(false);
    await model.pass(30_000 - blockedMs);
    await model.pass(500);
    expect(next?.held).toBe(true);
  },
);
