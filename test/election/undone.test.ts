/** What outlives a call must not: links to the caller's signals, timers, calls under way, waiters. */
import { getEventListeners } from "node:events";
import { beforeEach, describe, expect, it } from "vitest";
import { observeLeaders } from "../../src/election/observe.js";
import { Backoff } from "../../src/kit/backoff.js";
import { Lock } from "../../src/lock/lock.js";
import type { Leader } from "../../src/seam/backend.js";
import { HandBackend, openScene, outcome, RETRY_MS, silence, TTL_MS } from "../support/hand-backend.js";
import { SetClock } from "../support/set-clock.js";

let stop: AbortController;
const listeners = (): number => getEventListeners(stop.signal, "abort").length;

beforeEach(() => {
  stop = new AbortController();
});

describe("the caller's signal is not listened to after", () => {
  it("leader(), answered or not", async () => {
    const { backend, clock, election } = openScene();
    await election.leader({ signal: stop.signal });
    expect(listeners()).toBe(0);
    backend.leaders = () => {
      throw new Error("away");
    };
    await election.leader({ signal: stop.signal }).catch(() => {});
    expect([listeners(), clock.timers]).toEqual([0, 0]);
    await election.close();
  });

  it("observe(), when its reader leaves", async () => {
    const { election } = openScene();
    for await (const leader of election.observe({ signal: stop.signal })) {
      expect([leader, listeners()]).toEqual([null, 1]);
      break;
    }
    expect(listeners()).toBe(0);
    await election.close();
  });
});

describe("a term that lapses because its work goes on", () => {
  it("has no limit any more beside its deadline, and gives up what it was publishing", async () => {
    const { backend, clock, election } = openScene({ drainMs: 100, maxTermMs: 3_600_000 });
    backend.onProclaim = silence;
    const running = election.run(() => silence(), { signal: stop.signal });
    await clock.advance(0);
    const published = outcome(election.term!.proclaim("v"));
    const term = election.term!;
    stop.abort();
    await clock.advance(99);
    expect(published.settled).toBe(false);
    await clock.advance(61); // its drain, and the moment a call is given to end
    expect([published.settled, term.held]).toEqual([true, true]);
    expect(clock.timers).toBe(1);
    await clock.advance(TTL_MS);
    await running;
    await election.close();
    expect(clock.timers).toBe(0);
  });
});

it("a leader of a store that went back is told though it has the number of one that had ended", async () => {
  const clock = new SetClock();
  const at = (token: bigint): Leader => ({ candidate: `c${token}`, token, value: "" });
  const shown: (Leader | null)[] = [at(5n), null, at(3n), at(5n), null, at(5n)];
  const failed: unknown[] = [];
  const told: (bigint | null)[] = [];
  const leaders = observeLeaders({
    follow: async function* () {
      yield* shown;
      stop.abort();
    },
    ...{ clock, backoff: new Backoff(clock, RETRY_MS, TTL_MS), signal: stop.signal },
    ...{ seen: () => {}, failed: (error: unknown) => void failed.push(error) },
  });
  for await (const leader of leaders) told.push(leader?.token ?? null);
  expect(told).toEqual([5n, null, 3n, 5n, null]);
  expect(failed).toEqual([expect.objectContaining({ code: "token-regression" })]);
});

it("who waits for a lock that is closed is refused at once, though the work under it takes its time", async () => {
  const clock = new SetClock();
  const lock = new Lock({ name: "l", backend: new HandBackend(clock), clock, ttlMs: TTL_MS, drainMs: 1_000 });
  let finish = (): void => {};
  const working = outcome(lock.withLock(() => new Promise<void>((resolve) => (finish = resolve))));
  await clock.advance(0);
  const waiting = outcome(lock.acquire());
  await clock.advance(0);
  const closing = lock.close();
  await clock.advance(0);
  expect(waiting.error).toMatchObject({
    code: "state",
    message: expect.stringContaining('lock "l" is closed'),
  });
  expect(working.settled).toBe(false);
  finish();
  await clock.advance(0);
  await closing;
  expect([working.settled, clock.timers]).toEqual([true, 0]);
});
