/** One Election is one candidate: whatever is called twice at once, there is never a second term beside the first. */
import { expect, test } from "vitest";
import { Election, memoryBackend } from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";
import type { Backend, Term } from "../../src/index.js";

function fulfilled(results: PromiseSettledResult<Term | null>[]): Term[] {
  return results.flatMap((result) => (result.status === "fulfilled" && result.value ? [result.value] : []));
}

test("two campaigns in one breath: one term, and the second call is refused", async () => {
  await using election = new Election({ name: "e", backend: memoryBackend(), ttlMs: 3000 });
  const results = await Promise.allSettled([election.campaign(), election.campaign()]);
  expect(fulfilled(results).filter((term) => term.held)).toHaveLength(1);
  expect(results[1]).toMatchObject({ status: "rejected", reason: { code: "state" } });
});

test("two single attempts in one breath: one term", async () => {
  await using election = new Election({ name: "e", backend: memoryBackend(), ttlMs: 3000 });
  const results = await Promise.allSettled([election.tryCampaign(), election.tryCampaign()]);
  expect(fulfilled(results).filter((term) => term.held)).toHaveLength(1);
});

test("run() is refused while campaign() has not come back yet", async () => {
  await using election = new Election({ name: "e", backend: memoryBackend(), ttlMs: 3000 });
  const first = election.campaign();
  await expect(election.run(() => {})).rejects.toMatchObject({ code: "state" });
  expect((await first).held).toBe(true);
});

test("a candidate that waits to be ready, or to try again, is standing", async () => {
  const inner = memoryBackend();
  let failures = 1;
  const backend: Backend = {
    name: "flaky",
    guarantees: inner.guarantees,
    records: inner.records,
    observe: (name, options) => inner.observe(name, options),
    campaign: (candidacy, options) =>
      failures-- > 0 ? Promise.reject(new Error("away")) : inner.campaign(candidacy, options),
    [Symbol.asyncDispose]: () => inner[Symbol.asyncDispose](),
  };
  let ready: (answer: boolean) => void = () => {};
  await using election = new Election({
    name: "e",
    backend,
    ttlMs: 3000,
    ready: () => new Promise<boolean>((resolve) => (ready = resolve)),
  });
  const failed = new Promise((resolve) => election.on("error", resolve));
  const first = election.campaign();
  await expect(election.tryCampaign()).rejects.toMatchObject({ code: "state" });
  ready(true);
  await failed; // now it pauses
  await expect(election.tryCampaign()).rejects.toMatchObject({ code: "state" });
  const pump = setInterval(() => ready(true), 5);
  const term = await first;
  clearInterval(pump);
  await term.resign();
});

test("after a term, and after a refused or fruitless attempt, the candidate may campaign again", async () => {
  const backend = memoryBackend();
  await using election = new Election({ name: "e", backend, ttlMs: 3000 });
  await using other = new Election({ name: "e", backend, ttlMs: 3000 });
  const theirs = await other.campaign();
  expect(await election.tryCampaign()).toBeNull();
  await expect(election.campaign({ signal: AbortSignal.abort() })).rejects.toThrow(/abort/i);
  await theirs.resign();
  const first = await election.campaign();
  await first.resign();
  const second = await election.campaign();
  expect(second.token).toBeGreaterThan(first.token);
});

test("between two terms of run() nothing else begins: it goes on", async () => {
  const clock = new VirtualClock();
  const election = new Election({ name: "e", backend: memoryBackend({ clock }), ttlMs: 3000, clock });
  let runs = 0;
  const running = election.run(() => void runs++);
  await clock.advance(0);
  expect([runs, election.leading]).toEqual([1, false]);
  await expect(election.campaign()).rejects.toMatchObject({ code: "state" });
  await expect(election.tryCampaign()).rejects.toMatchObject({ code: "state" });
  await expect(election.run(() => {})).rejects.toMatchObject({ code: "state" });
  await clock.advance(3000);
  expect(runs).toBeGreaterThan(1);
  await election.close();
  await running;
});
