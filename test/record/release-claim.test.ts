/** Giving a lease back for a process that is dead: guarded by candidate and token, so that nobody else is harmed. */
import { afterEach, expect, test } from "vitest";
import type { BackendWithRecords, Claim } from "../../src/index.js";
import { Election, memoryBackend } from "../../src/index.js";

const signal = new AbortController().signal;
let backend: BackendWithRecords & { release: NonNullable<BackendWithRecords["release"]> };
const open: Election[] = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map((election) => election.close()));
});

function election(): Election {
  const one = new Election({ name: "jobs", backend, id: "c", ttlMs: 60_000 });
  open.push(one);
  return one;
}

function fresh(): void {
  const memory = memoryBackend();
  if (memory.release === undefined) throw new Error("memory releases claims");
  backend = memory as typeof backend;
}

test("the next candidate does not wait for the ttl of a leader that is gone", async () => {
  fresh();
  const { candidate, token } = await election().campaign();
  const next = election().campaign();
  expect(await backend.release({ election: "jobs", candidate, token }, { signal })).toBe("released");
  expect((await next).token > token).toBe(true);
});

test("a claim to an earlier term of a candidate that leads again does not end its new term", async () => {
  fresh();
  const leader = election();
  const first = await leader.campaign();
  await first.resign();
  const second = await leader.campaign();
  const old: Claim = { election: "jobs", candidate: first.candidate, token: first.token };
  expect(await backend.release(old, { signal })).toBe("not-held");
  await second.proclaim("still leading");
  expect(second.held).toBe(true);
});

test("a claim of another candidate with the same token, or for a successor's term, changes nothing", async () => {
  fresh();
  const term = await election().campaign();
  const claims = [
    { election: "jobs", candidate: "somebody-else", token: term.token },
    { election: "jobs", candidate: term.candidate, token: term.token + 1n },
    { election: "others", candidate: term.candidate, token: term.token },
  ];
  for (const claim of claims) expect(await backend.release(claim, { signal })).toBe("not-held");
  await term.proclaim("still leading");
});

test("what was released is not released twice, and tokens go on rising", async () => {
  fresh();
  const { candidate, token } = await election().campaign();
  const claim = { election: "jobs", candidate, token };
  expect(await backend.release(claim, { signal })).toBe("released");
  expect(await backend.release(claim, { signal })).toBe("not-held");
  expect((await election().campaign()).token > token).toBe(true);
});

test("an evicted leader loses its term at its next renewal, and nobody leads before its ttl has passed", async () => {
  fresh();
  const leader = new Election({ name: "jobs", backend, id: "c", ttlMs: 1_500 });
  open.push(leader);
  const term = await leader.campaign();
  const { candidate, token } = term;
  const claim = { election: "jobs", candidate, token };
  const asked = performance.now();
  expect(await backend.evict!(claim, { signal })).toEqual({ waitMs: 1_500 });
  expect(await backend.evict!(claim, { signal })).toBe("not-held");
  expect(await backend.release(claim, { signal })).toBe("not-held");
  expect(await leader.leader()).toBeNull();
  const next = await election().campaign();
  expect(performance.now() - asked).toBeGreaterThanOrEqual(1_490);
  expect(next.token > token).toBe(true);
  expect(term.held).toBe(false);
});

test("an eviction of an earlier term, or of another candidate, changes nothing", async () => {
  fresh();
  const term = await election().campaign();
  for (const claim of [
    { election: "jobs", candidate: "somebody-else", token: term.token },
    { election: "jobs", candidate: term.candidate, token: term.token - 1n },
  ])
    expect(await backend.evict!(claim, { signal })).toBe("not-held");
  await term.proclaim("still leading");
});
