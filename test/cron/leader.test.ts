/** One term at a schedule: what it waits for, cleans up, counts and tells. On a virtual clock, with a store that fails on demand. */
import { getEventListeners } from "node:events";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Term } from "../../src/api/term.js";
import { CronReports } from "../../src/cron/events.js";
import { everyTimetable, schedule } from "../../src/cron/index.js";
import type { JobContext, Run } from "../../src/cron/index.js";
import { ScheduleLeader } from "../../src/cron/leader.js";
import type { Policy } from "../../src/cron/schedule.js";
import { LedgerStore } from "../../src/cron/store.js";
import { ConclaveError } from "../../src/kit/errors.js";
import type { RecordStore } from "../../src/seam/table.js";
import { ATTEMPT_MS, openScene, outcome, TTL_MS } from "../support/hand-backend.js";
import type { Scene } from "../support/hand-backend.js";

const SECOND = everyTimetable(1_000);
const POLICY: Policy = {
  ...{ mode: "at-most-once", misfire: "once", graceMs: 60_000, maxCatchUp: 100 },
  ...{ overlap: "parallel", maxAttempts: 10, keep: 50, retry: { attempts: 1, backoffMs: 0 } },
};

interface Running {
  readonly context: JobContext;
  end(error?: Error): Promise<void>;
}

let scene: Scene;
let term: Term;
let events: CronReports;
let told: string[];
let errors: unknown[];
let jobs: Running[];
let closed: AbortController;
/** Called before each write; what it throws means "not known". */
let onWrite: () => unknown;

beforeEach(async () => {
  scene = openScene();
  [told, errors, jobs] = [[], [], []];
  onWrite = () => {};
  closed = new AbortController();
  events = new CronReports("nightly", "hand", undefined);
  for (const event of ["started", "finished", "missed", "skipped"] as const)
    events.on(event, ({ run }) => void told.push(`${event} ${run.state}`));
  events.on("error", ({ error }) => void errors.push(error));
  term = await scene.election.campaign();
});

afterEach(async () => {
  onWrite = () => {};
  await scene.election.close();
  expect(scene.clock.timers, "timers that are left").toBe(0);
});

const job = (context: JobContext): Promise<void> =>
  new Promise((resolve, reject) => {
    const end = async (error?: Error): Promise<void> => {
      if (error === undefined) resolve();
      else reject(error);
      await scene.clock.advance(0);
    };
    jobs.push({ context, end });
  });

function store(): LedgerStore {
  const { records } = scene.backend;
  const failing: RecordStore = {
    read: (key, options) => records.read(key, options),
    write: async (key, expected, record, options) => {
      await onWrite();
      return records.write(key, expected, record, options);
    },
    [Symbol.asyncDispose]: () => records[Symbol.asyncDispose](),
  };
  return new LedgerStore({ records: failing }, "nightly", scene.clock, ATTEMPT_MS);
}

function lead(policy: Partial<Policy> = {}, timeoutMs?: number): ReturnType<typeof outcome> {
  const leader = new ScheduleLeader({
    ...{ term, timetable: SECOND, policy: { ...POLICY, ...policy }, job, timeoutMs, store: store() },
    ...{ clock: scene.clock, events, since: scene.clock.wall(), closed: closed.signal },
  });
  return outcome(leader.lead());
}

const runs = async (): Promise<readonly Run[]> =>
  (await store().read(new AbortController().signal))?.runs ?? [];
const listeners = (): number => getEventListeners(term.signal, "abort").length;

describe("a leader", () => {
  it("is done only when its jobs are, and listens to its term no longer", async () => {
    const leading = lead();
    await scene.clock.advance(1_000);
    void term.resign();
    await scene.clock.advance(0);
    expect([leading.settled, jobs[0]!.context.signal.aborted]).toEqual([false, true]);
    await jobs[0]!.end();
    expect([leading.settled, listeners()]).toEqual([true, 0]);
  });

  it("that waits for a job keeps one timer and one listener, however long it takes, and none of them after", async () => {
    lead({ overlap: "wait" });
    await scene.clock.advance(1_000);
    await scene.clock.advance(1_000);
    const before = [listeners(), scene.clock.timers];
    await scene.clock.advance(30_000);
    expect([listeners(), scene.clock.timers]).toEqual(before);
    await jobs[0]!.end();
    expect(jobs).toHaveLength(2);
    expect([listeners(), scene.clock.timers]).toEqual(before);
    void term.resign();
    await jobs[1]!.end();
  });

  it("tells those jobs to stop that run, not those that have ended; and their time limits end with them", async () => {
    const leading = lead({}, 3_600_000);
    await scene.clock.advance(1_000);
    const timers = scene.clock.timers;
    await jobs[0]!.end();
    expect(scene.clock.timers).toBe(timers - 1);
    await scene.clock.advance(1_000);
    void term.resign();
    await jobs[1]!.end(new Error("stopped"));
    expect(jobs.map(({ context }) => context.signal.aborted)).toEqual([false, true]);
    expect(leading.settled).toBe(true);
  });

  it("does not begin the next attempt while a job that ignores its time limit is still at the one before", async () => {
    const leading = lead({ retry: { attempts: 2, backoffMs: 100 } }, 200);
    await scene.clock.advance(1_000);
    await scene.clock.advance(200);
    expect(jobs[0]!.context.signal.aborted).toBe(true);
    await scene.clock.advance(400);
    expect(jobs.map(({ context }) => context.attempt)).toEqual([1]);
    await jobs[0]!.end();
    await scene.clock.advance(100);
    expect(jobs.map(({ context }) => context.attempt)).toEqual([1, 2]);
    void term.resign();
    await jobs[1]!.end();
    expect(leading.settled).toBe(true);
  });

  it("whose term is over tries once to write down how a job ended, says that it failed, and goes", async () => {
    const leading = lead();
    await scene.clock.advance(1_000);
    scene.backend.onRenew = () => "lost";
    await scene.clock.advance(TTL_MS / 3);
    for (const each of jobs.slice(1)) await each.end();
    errors.length = 0;
    let writes = 0;
    onWrite = () => {
      writes++;
      throw new ConclaveError("unavailable", "away");
    };
    await jobs[0]!.end();
    await scene.clock.advance(0);
    expect(leading.settled).toBe(true);
    expect(writes).toBe(1);
    expect(errors).toEqual([expect.objectContaining({ code: "unavailable" })]);
  });

  it("whose job's end cannot be written goes on with the others", async () => {
    lead();
    await scene.clock.advance(2_000);
    onWrite = () => {
      throw new ConclaveError("forbidden", "not now");
    };
    await jobs[0]!.end();
    onWrite = () => {};
    await jobs[1]!.end();
    expect(errors).toEqual([expect.objectContaining({ code: "forbidden" })]);
    expect((await runs()).map(({ state }) => state)).toEqual(["running", "done"]);
    void term.resign();
  });

  it("waits out a store that is away, says so, and claims the instant once", async () => {
    lead();
    await scene.clock.advance(500);
    onWrite = () => {
      throw new ConclaveError("unavailable", "away");
    };
    await scene.clock.advance(1_000);
    expect([jobs.length, errors.length > 1]).toEqual([0, true]);
    onWrite = () => {};
    await scene.clock.advance(450);
    expect(jobs).toHaveLength(1);
    void term.resign();
    await jobs[0]!.end();
  });

  it("does not start what it has claimed when its term is over by then", async () => {
    lead();
    onWrite = () => {};
    await scene.clock.advance(900);
    onWrite = () => {
      onWrite = () => {};
      scene.clock.stall(TTL_MS);
    };
    await scene.clock.advance(100);
    expect(jobs).toHaveLength(0);
    expect(events.metrics.started).toBe(0);
    expect((await runs()).map(({ state }) => state)).toEqual(["released"]);
  });

  it("says once that its clock is far behind, and not that it is a little", async () => {
    const done = lead();
    await scene.clock.advance(1_000);
    void term.resign();
    await jobs[0]!.end();
    expect(done.settled).toBe(true);
    for (const [behindMs, complaints] of [
      [50_000, 0],
      [50_000, 1],
    ] as const) {
      scene.clock.jumpWall(-behindMs);
      term = await scene.election.campaign();
      errors.length = 0;
      lead();
      await scene.clock.advance(20_000);
      expect(errors).toHaveLength(complaints);
      await term.resign();
    }
  });
});

describe("what is told and counted", () => {
  it("how each run ended, and how long the last one took", async () => {
    lead({}, 5_000);
    await scene.clock.advance(3_000);
    await jobs[0]!.end();
    await jobs[1]!.end(new Error("broken"));
    await scene.clock.advance(4_999);
    for (const each of jobs.slice(3)) await each.end();
    await scene.clock.advance(1);
    expect(events.metrics).toMatchObject({ failed: 1, timedOut: 1, lastDurationMs: 5_000, retried: 0 });
    expect(told).toContain("finished failed");
    expect(told).toContain("finished timed-out");
    expect((await runs())[1]).toMatchObject({ state: "failed", note: expect.stringContaining("broken") });
    void term.resign();
    for (const each of jobs) await each.end(new Error("stopped"));
    expect(events.metrics.interrupted).toBeGreaterThan(0);
  });

  it("each instant that was passed over, also of many at once", async () => {
    lead({ overlap: "skip" });
    await scene.clock.advance(4_500);
    await jobs[0]!.end();
    await scene.clock.advance(1_000);
    expect(jobs).toHaveLength(2);
    const skipped = (await runs()).filter(({ state }) => state === "skipped");
    const count = skipped.reduce((sum, run) => sum + (run.count ?? 1), 0);
    expect(count).toBe(3);
    expect(events.metrics).toMatchObject({ started: 2, skipped: 3 });
    void term.resign();
    await jobs[1]!.end();
  });

  it("a run of the leader before that is tried again, as one more attempt", async () => {
    const first = lead({ mode: "at-least-once" });
    await scene.clock.advance(1_000);
    void term.resign();
    await jobs[0]!.end(new Error("stopped"));
    expect(first.settled).toBe(true);
    term = await scene.election.campaign();
    lead({ mode: "at-least-once" });
    await scene.clock.advance(0);
    expect(jobs[1]!.context.attempt).toBe(2);
    expect(events.metrics).toMatchObject({ started: 2, retried: 1, interrupted: 1 });
    void term.resign();
    for (const each of jobs) await each.end();
  });
});

it("a record that cannot be read is a failure of the work, told by the election too; a newer leader is not", async () => {
  await term.resign();
  const { records } = scene.backend;
  const call = { signal: new AbortController().signal };
  await records.write("cron.nightly", null, "not ours", call);
  const replica = await schedule({
    ...{ name: "nightly", cron: SECOND, backend: scene.backend, clock: scene.clock, job, ttlMs: TTL_MS },
  });
  const failed: unknown[] = [];
  replica.election.on("error", ({ error }) => void failed.push(error));
  await scene.clock.advance(100);
  expect(failed).toEqual([expect.objectContaining({ code: "conflict" })]);
  const closing = replica.close();
  await scene.clock.advance(TTL_MS);
  await closing;
});
