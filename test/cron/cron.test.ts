import { expect, test } from "vitest";
import { everyTimetable, nodeCronCoordinator, readHistory, schedule } from "../../src/cron/index.js";
import type { JobContext, Run, ScheduleOptions, Timetable } from "../../src/cron/index.js";
import { memoryBackend, systemClock } from "../../src/index.js";
import type { Backend, Clock } from "../../src/index.js";

/** The real clock with a wall clock that can be set. */
class SettableClock implements Clock {
  aheadMs = 0;
  now = (): number => systemClock.now();
  wall = (): number => systemClock.wall() + this.aheadMs;
  boot = (): number => systemClock.boot();
  after = (delayMs: number, callback: () => void) => systemClock.after(delayMs, callback);
  random = (): number => systemClock.random();
  uniqueId = (): string => systemClock.uniqueId();
}

/** A timetable whose instants the test decides. */
class Manual implements Timetable {
  readonly instants: number[] = [];
  next(after: number): number | null {
    return this.instants.find((instant) => instant > after) ?? 8e15;
  }
  latest(after: number, until: number, most: number): number[] {
    return this.instants.filter((instant) => instant > after && instant <= until).slice(-most);
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5));
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await turn();
}

/** Keeps the event loop busy. */
function blockFor(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

interface Harness {
  readonly ran: { at: number; attempt: number }[];
  readonly options: ScheduleOptions;
}

function harness(backend: Backend, more: Partial<ScheduleOptions> = {}): Harness {
  const ran: Harness["ran"] = [];
  const job = ({ scheduledAt, attempt }: JobContext): void =>
    void ran.push({ at: scheduledAt.getTime(), attempt });
  return { ran, options: { name: "nightly", cron: everyTimetable(50), backend, job, ttlMs: 1000, ...more } };
}

test("three replicas run each instant once", async () => {
  const backend = memoryBackend();
  const h = harness(backend);
  const replicas = await Promise.all([1, 2, 3].map(() => schedule(h.options)));
  await until(() => h.ran.length >= 8);
  await Promise.all(replicas.map((replica) => replica.close()));
  const instants = h.ran.map(({ at }) => at);
  expect(new Set(instants).size).toBe(instants.length);
  expect(instants.every((at) => at % 50 === 0)).toBe(true);
  const history = await readHistory(backend, "nightly");
  expect(history?.runs.filter((run) => run.state === "done").map((run) => run.at)).toEqual(instants);
});

test("the job is handed its instant, attempt, term and a signal; the outcome is told and kept", async () => {
  const backend = memoryBackend();
  const finished: Run[] = [];
  const contexts: JobContext[] = [];
  const replica = await schedule({
    ...harness(backend, { ttlMs: 30_000 }).options,
    job: (context) => {
      contexts.push(context);
      // As on a busy machine: instants pass meanwhile, and those that were passed over are in the history too.
      if (contexts.length === 1) blockFor(200);
      expect(context.term.held).toBe(true);
      expect(context.signal.aborted).toBe(false);
      if (contexts.length === 2) throw new Error("no connection");
    },
  });
  replica.on("finished", ({ run }) => finished.push(run));
  await until(() => finished.length >= 3);
  await replica.close();
  expect(finished.slice(0, 3).map((run) => run.state)).toEqual(["done", "failed", "done"]);
  const [, second] = contexts;
  const at = second!.scheduledAt.getTime();
  expect(finished[1]!.at).toBe(at);
  const history = await readHistory(backend, "nightly");
  expect(history?.runs.find((run) => run.at === at)).toMatchObject({
    state: "failed",
    note: "no connection",
    attempt: 1,
    token: second!.term.token,
  });
  expect(replica.metrics).toMatchObject({ failed: 1 });
});

test("a clock set back an hour runs nothing twice, and says so", async () => {
  const backend = memoryBackend();
  const clock = new SettableClock();
  const h = harness(backend, { clock });
  const errors: unknown[] = [];
  const replica = await schedule(h.options);
  replica.on("error", ({ error }) => errors.push(error));
  await until(() => h.ran.length >= 3);
  clock.aheadMs = -3_600_000;
  await until(() => errors.length > 0);
  const before = h.ran.length;
  expect(String(errors[0])).toMatch(/clock is 36\d\d s before/);
  clock.aheadMs = 0;
  await replica.close();
  const again = harness(backend, { clock });
  const second = await schedule(again.options);
  await until(() => again.ran.length >= 2);
  await second.close();
  const all = [...h.ran.slice(0, before), ...again.ran].map(({ at }) => at);
  expect(new Set(all).size).toBe(all.length);
  expect(all).toEqual([...all].sort((a, b) => a - b));
}, 30_000);

test("a run that goes on when its term is given up: missed in one mode, run again in the other", async () => {
  for (const mode of ["at-most-once", "at-least-once"] as const) {
    const backend = memoryBackend();
    const cron = new Manual();
    const missed: Run[] = [];
    const attempts: number[] = [];
    // Known before anyone sleeps: late enough for the first leader to be leading by then.
    const at = Date.now() + 1_000;
    cron.instants.push(at);
    const first = await schedule({
      ...harness(backend, { cron, mode }).options,
      job: ({ attempt, signal }) => {
        attempts.push(attempt);
        return new Promise((_, reject) =>
          signal.addEventListener("abort", () => reject(new Error("stopped"))),
        );
      },
    });
    first.on("missed", ({ run }) => missed.push(run));
    await until(() => attempts.length === 1);
    await first.close();
    const second = await schedule({
      ...harness(backend, { cron, mode }).options,
      job: ({ attempt, scheduledAt }) => {
        attempts.push(attempt);
        expect(scheduledAt.getTime()).toBe(at);
      },
    });
    second.on("missed", ({ run }) => missed.push(run));
    await until(() => second.election.leading);
    if (mode === "at-least-once") await until(() => attempts.length === 2);
    else await turn();
    await second.close();
    expect(attempts).toEqual(mode === "at-least-once" ? [1, 2] : [1]);
    expect(missed.map((run) => run.at)).toEqual(mode === "at-least-once" ? [] : [at]);
  }
}, 30_000);

test("a job that takes too long is told to stop and counted; while it goes on, instants are skipped and told", async () => {
  const backend = memoryBackend();
  const states: string[] = [];
  let skipped = 0;
  let release = (): void => {};
  let runs = 0;
  const replica = await schedule({
    ...harness(backend, { timeoutMs: 80 }).options,
    job: ({ signal }) => {
      if (++runs > 1) return;
      return new Promise<void>((resolve) => {
        signal.addEventListener("abort", () => states.push("told"));
        release = resolve;
      });
    },
  });
  replica.on("finished", ({ run }) => states.push(run.state));
  replica.on("skipped", () => skipped++);
  await until(() => states.includes("timed-out") && skipped >= 3);
  expect(runs).toBe(1);
  expect(states).toEqual(["told", "timed-out"]);
  release();
  await until(() => runs > 1);
  await replica.close();
});

test("wrong options are refused before anything is scheduled", async () => {
  const { options } = harness(memoryBackend());
  await expect(schedule({ ...options, cron: "x" })).rejects.toMatchObject({ code: "invalid" });
  await expect(schedule({ ...options, cron: "0 0 31 2 *" })).rejects.toThrow(/never fires/);
  await expect(schedule({ ...options, keep: 0 })).rejects.toMatchObject({ code: "invalid" });
  for (const timeoutMs of [0, -1, NaN, Infinity, 2 ** 31])
    await expect(schedule({ ...options, timeoutMs })).rejects.toThrow(/timeoutMs is/);
  for (const bad of [{ maxCatchUp: 1.5 }, { keep: 1.5 }, { maxAttempts: NaN }, { graceMs: -1 }])
    await expect(schedule({ ...options, ...bad })).rejects.toMatchObject({ code: "invalid" });
  const noJob = { ...options, job: undefined } as Partial<ScheduleOptions> as ScheduleOptions;
  await expect(schedule(noJob)).rejects.toMatchObject({ code: "invalid" });
  await expect(schedule({ ...options, mode: "twice" as "at-most-once" })).rejects.toThrow(/mode is "twice"/);
});

test("a record that is not ours stops the schedule and is left alone", async () => {
  const backend = memoryBackend();
  const { signal } = new AbortController();
  await backend.records.write("cron.nightly", null, "something else", { signal });
  const errors: unknown[] = [];
  const h = harness(backend);
  const replica = await schedule(h.options);
  replica.on("error", ({ error }) => errors.push(error));
  await until(() => errors.length > 0);
  await replica.close();
  expect(errors[0]).toMatchObject({ code: "conflict" });
  expect(h.ran).toEqual([]);
  expect((await backend.records.read("cron.nightly", { signal }))?.record).toBe("something else");
});

test("node-cron's own tasks: of several coordinators one says yes, forever", async () => {
  const backend = memoryBackend();
  const coordinators = Array.from({ length: 5 }, () => nodeCronCoordinator(backend));
  for (const slot of ["2026-11-16T09:00:00.000Z", "2026-11-16T09:01:00.000Z", "2026-11-16T09:00:30.000Z"]) {
    const answers = await Promise.all(coordinators.map((c) => c.shouldRun(`bill:${slot}`, 1000)));
    expect(answers.filter(Boolean)).toHaveLength(1);
    expect(await coordinators[0]!.shouldRun(`bill:${slot}`, 1000)).toBe(false);
    expect(await coordinators[0]!.shouldRun(`mail:${slot}`, 1000)).toBe(true);
  }
  await expect(coordinators[0]!.shouldRun("no slot", 1000)).rejects.toMatchObject({ code: "invalid" });
});

test("node-cron: a key that is no slot is refused, and spoils nothing", async () => {
  const coordinator = nodeCronCoordinator(memoryBackend());
  for (const key of [
    "bill",
    "bill:",
    ":2026-11-16T09:00:00Z",
    "bill:2026-13-45T99:99:99Z",
    "a\nb:2026-11-16T09:00:00Z",
  ])
    await expect(coordinator.shouldRun(key, 1000)).rejects.toMatchObject({ code: "invalid" });
  expect(await coordinator.shouldRun("bill:2026-11-16T09:00:00.000Z", 1000)).toBe(true);
  expect(await coordinator.shouldRun("bill:2026-11-16T09:00:00Z", 1000)).toBe(false);
});

test("node-cron itself, five tasks as if on five replicas: every second once", async () => {
  const { createTask } = await import("node-cron");
  const backend = memoryBackend();
  const ran: string[] = [];
  const tasks = Array.from({ length: 5 }, () =>
    createTask("* * * * * *", ({ date }) => void ran.push(date.toISOString()), {
      name: "each-second",
      distributed: true,
      runCoordinator: nodeCronCoordinator(backend),
    }),
  );
  for (const task of tasks) await task.start();
  await until(() => ran.length >= 3);
  for (const task of tasks) await task.destroy();
  expect(new Set(ran).size).toBe(ran.length);
});
