/** Schedules in virtual time: single stories. Whatever chance can do to them is the simulator's business. */
import { expect, test } from "vitest";
import { everyTimetable, schedule } from "../../src/cron/index.js";
import type { Job, Run, ScheduleOptions } from "../../src/cron/index.js";
import { ConclaveError, memoryBackend } from "../../src/index.js";
import type { Backend } from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";

const SECOND = everyTimetable(1_000);

function options(clock: VirtualClock, backend: Backend, job: Job): ScheduleOptions {
  return { name: "nightly", cron: SECOND, backend, clock, job, ttlMs: 3_000, drainMs: 2_000 };
}

/** Lets time pass until the promise has settled, no longer. */
async function within(clock: VirtualClock, mostMs: number, promise: Promise<void>): Promise<void> {
  const state = { settled: false };
  const settle = (): void => void (state.settled = true);
  promise.then(settle, settle);
  for (let ms = 0; ms < mostMs && !state.settled; ms += 10) await clock.advance(10);
  expect(state.settled).toBe(true);
  await promise;
}

test("after close nothing is left, even of a leader that waits for a job that does not stop", async () => {
  const clock = new VirtualClock();
  const replica = await schedule({
    ...options(clock, memoryBackend({ clock }), () => new Promise(() => {})),
    overlap: "wait",
    timeoutMs: 600_000,
  });
  await clock.advance(5_000);
  expect(replica.metrics.started).toBe(1);
  await within(clock, 10_000, replica.close());
  expect(clock.timers).toBe(0);
});

test("what a job does after close is neither written down nor told", async () => {
  const clock = new VirtualClock();
  const backend = memoryBackend({ clock });
  const told: string[] = [];
  const jobs: (() => void)[] = [];
  const job = (): Promise<void> => new Promise((resolve) => void jobs.push(resolve));
  const replica = await schedule(options(clock, backend, job));
  for (const event of ["finished", "missed", "error"] as const)
    replica.on(event, () => void told.push(event));
  await clock.advance(1_500);
  await within(clock, 10_000, replica.close());
  told.length = 0;
  for (const end of jobs) end();
  await clock.advance(1_000);
  expect(told).toEqual([]);
  expect((await replica.history())?.runs[0]).toMatchObject({ state: "running" });
});

test("a miss is told by an event also if the answer of the store got lost", async () => {
  const clock = new VirtualClock();
  const backend = memoryBackend({ clock });
  const dying = await schedule(options(clock, backend, () => new Promise(() => {})));
  await clock.advance(1_500);
  await within(clock, 10_000, dying.close()); // its job does not stop, so it never tells how it ended

  let losses = 0;
  const lossy: Backend = {
    name: backend.name,
    guarantees: backend.guarantees,
    timing: backend.timing,
    campaign: (candidacy, call) => backend.campaign(candidacy, call),
    observe: (election, call) => backend.observe(election, call),
    records: {
      read: (key, call) => {
        if (losses === 1) losses++;
        else return backend.records.read(key, call);
        return Promise.reject(new ConclaveError("unavailable", "the answer got lost"));
      },
      write: async (key, expected, record, call) => {
        const entry = await backend.records.write(key, expected, record, call);
        if (losses++ === 0) throw new ConclaveError("unavailable", "the answer got lost");
        return entry;
      },
      [Symbol.asyncDispose]: async () => {},
    },
    [Symbol.asyncDispose]: async () => {},
  };
  const heir = await schedule(options(clock, lossy, () => {}));
  const missed: number[] = [];
  heir.on("missed", ({ run }) => void missed.push(run.at));
  await clock.advance(5_000);
  expect(losses).toBeGreaterThan(1);
  expect(missed).toHaveLength(1);
  await within(clock, 10_000, heir.close());
});

test("after an outage every instant runs in turn with misfire all, whatever the overlap policy", async () => {
  for (const overlap of ["skip", "wait", "parallel"] as const) {
    const clock = new VirtualClock();
    const backend = memoryBackend({ clock });
    const ran: number[] = [];
    let jobMs = 0;
    const job: Job = async ({ scheduledAt }) => {
      ran.push(scheduledAt.getTime());
      if (jobMs > 0) await new Promise<void>((resolve) => clock.after(jobMs, resolve));
    };
    const all = { ...options(clock, backend, job), misfire: "all", overlap } as const;
    const before = await schedule(all);
    await clock.advance(2_500);
    await within(clock, 10_000, before.close());
    await clock.advance(6_000); // nobody is there
    jobMs = 30; // and a job takes its time
    const skipped: number[] = [];
    const after = await schedule(all);
    after.on("skipped", ({ run }) => void skipped.push(run.at));
    await clock.advance(5_000);
    await within(clock, 10_000, after.close());
    const gaps = ran.slice(1).map((at, i) => at - ran[i]!);
    expect(new Set(gaps)).toEqual(new Set([1_000]));
    expect(ran.length).toBeGreaterThan(10);
    expect(skipped).toEqual([]);
  }
});

test("at least once: a job that returns because it was told to stop is not taken for done", async () => {
  const clock = new VirtualClock();
  const backend = memoryBackend({ clock });
  const attempts: string[] = [];
  const job: Job = ({ scheduledAt, attempt, signal }) => {
    attempts.push(`${scheduledAt.getTime() / 1_000}#${attempt}`);
    // As loops do it: `if (signal.aborted) return;`
    return new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
  };
  const first = await schedule({ ...options(clock, backend, job), mode: "at-least-once" });
  await clock.advance(1_500);
  await within(clock, 10_000, first.close());
  expect((await first.history())?.runs[0]).toMatchObject({ state: "interrupted" });
  const instant = attempts[0]!.split("#")[0]!;
  const second = await schedule({ ...options(clock, backend, job), mode: "at-least-once" });
  await clock.advance(1_500);
  await within(clock, 10_000, second.close());
  expect(attempts.slice(0, 2)).toEqual([`${instant}#1`, `${instant}#2`]);
});

test("instants between the start of a replica and the very first leader are not lost in silence", async () => {
  for (const mode of ["at-most-once", "at-least-once"] as const) {
    const clock = new VirtualClock();
    const backend = memoryBackend({ clock });
    let broken = true;
    const slow: Backend = {
      name: backend.name,
      guarantees: backend.guarantees,
      timing: backend.timing,
      campaign: (candidacy, call) =>
        broken
          ? Promise.reject(new ConclaveError("unavailable", "the store is not up yet"))
          : backend.campaign(candidacy, call),
      observe: (election, call) => backend.observe(election, call),
      records: backend.records,
      [Symbol.asyncDispose]: async () => {},
    };
    const since = clock.wall();
    const ran: number[] = [];
    const skipped: Run[] = [];
    const job: Job = ({ scheduledAt }) => void ran.push(scheduledAt.getTime());
    const replica = await schedule({ ...options(clock, slow, job), mode, misfire: "all" });
    replica.on("skipped", ({ run }) => void skipped.push(run));
    await clock.advance(4_000);
    broken = false;
    await clock.advance(6_000);
    await within(clock, 10_000, replica.close());
    const first = SECOND.next(since);
    if (mode === "at-least-once") {
      expect(ran[0]).toBe(first);
      expect(skipped).toEqual([]);
    } else {
      // Whether there was a record once, and somebody ran them, nobody knows.
      expect(skipped).toHaveLength(1);
      expect(skipped[0]).toMatchObject({ at: first, until: ran[0]! - 1_000 });
    }
  }
});
