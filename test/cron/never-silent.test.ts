/** A job that fails is seen, with and without a logger, and tried again as configured: in virtual time. */
import { expect, onTestFinished, test, vi } from "vitest";
import { everyTimetable, schedule } from "../../src/cron/index.js";
import type { Job, Schedule, ScheduleOptions } from "../../src/cron/index.js";
import { memoryBackend } from "../../src/index.js";
import type { Logger, LogFields } from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";

const MINUTE = everyTimetable(60_000);

interface Said {
  readonly level: string;
  readonly message: string;
  readonly fields: LogFields;
}

function recorded(): { readonly said: Said[]; readonly logger: Logger } {
  const said: Said[] = [];
  const at =
    (level: string) =>
    (message: string, fields: LogFields = {}): void =>
      void said.push({ level, message, fields });
  return { said, logger: { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") } };
}

interface Scene {
  readonly clock: VirtualClock;
  readonly replica: Schedule;
  readonly history: () => Promise<string[]>;
}

async function scene(name: string, job: Job, more: Partial<ScheduleOptions> = {}): Promise<Scene> {
  const clock = new VirtualClock();
  const backend = memoryBackend({ clock });
  const replica = await schedule({ name, cron: MINUTE, backend, clock, job, ttlMs: 3_000, ...more });
  onTestFinished(async () => {
    const closed = replica.close();
    await clock.advance(10_000);
    await closed;
  });
  const history = async (): Promise<string[]> =>
    ((await replica.history())?.runs ?? []).map(({ state, attempt }) => `${state} ${attempt}`);
  return { clock, replica, history };
}

const broken: Job = () => {
  throw new Error("no connection to postgres://me:secret@db");
};

test("a job that throws reaches the logger, with stack and fields, without secrets", async () => {
  const { said, logger } = recorded();
  const { clock, replica } = await scene("loud", broken, { logger });
  await clock.advance(61_000);
  const failed = said.find(({ fields }) => fields["state"] === "failed")!;
  expect(failed.level).toBe("error");
  expect(failed.message).toMatch(/^schedule "loud": run of .*Z failed: no connection to postgres/);
  expect(failed.fields).toMatchObject({
    election: "loud",
    candidate: replica.election.candidate,
    backend: "memory",
    token: expect.stringMatching(/^\d+$/),
    attempt: 1,
    err: { type: "Error", stack: expect.stringContaining("never-silent.test.ts") },
  });
  expect(JSON.stringify(failed.fields["err"])).not.toContain("secret");
});

test("without a logger and without listeners, the first failure is said on stderr", async () => {
  const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  onTestFinished(() => warned.mockRestore());
  const { clock } = await scene("unheard", broken);
  await clock.advance(121_000);
  expect(warned.mock.calls).toEqual([
    [
      expect.stringMatching(
        /^schedule "unheard": run of .* failed: .*pass a logger, or listen to "finished"/,
      ),
      { type: "ConclaveWarning", code: "CONCLAVE_UNHEARD" },
    ],
  ]);
});

test("with a listener stderr stays silent", async () => {
  const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  onTestFinished(() => warned.mockRestore());
  const { clock, replica } = await scene("heard", broken);
  const errors: unknown[] = [];
  replica.on("finished", ({ error }) => errors.push(error));
  await clock.advance(61_000);
  expect([errors.length, warned.mock.calls]).toEqual([1, []]);
});

test("a failed job is tried again after pauses that double, and stays one run", async () => {
  const times: number[] = [];
  const job: Job = ({ attempt }) => {
    times.push(clock.wall());
    if (attempt < 3) throw new Error("not yet");
  };
  const { clock, replica, history } = await scene("again", job, {
    retry: { attempts: 3, backoffMs: 1_000 },
    overlap: "skip",
  });
  const finished: string[] = [];
  replica.on("finished", ({ run }) => finished.push(`${run.state} ${run.attempt}`));
  await clock.advance(65_000);
  expect(times.map((at) => at - times[0]!)).toEqual([0, 1_000, 3_000]);
  expect(finished).toEqual(["failed 1", "failed 2", "done 3"]);
  expect(await history()).toEqual(["done 3"]);
  expect(replica.metrics).toMatchObject({ started: 3, failed: 2, done: 1, retried: 2 });
});

test("after the last attempt it is failed, and not run by anybody again", async () => {
  let runs = 0;
  const { clock, history } = await scene("never", () => Promise.reject(new Error(`no ${++runs}`)), {
    retry: { attempts: 2, backoffMs: 100 },
  });
  await clock.advance(110_000);
  expect([runs, await history()]).toEqual([2, ["failed 2"]]);
});

test.each(["at-most-once", "at-least-once"] as const)(
  "%s: a leader that ends during the pause leaves the rest to the mode's rule",
  async (mode) => {
    const clock = new VirtualClock();
    const backend = memoryBackend({ clock });
    const attempts: number[] = [];
    const job: Job = ({ attempt }) => {
      attempts.push(attempt);
      if (attempt === 1) throw new Error("not yet");
    };
    const options = { name: `over ${mode}`, cron: MINUTE, backend, clock, job, ttlMs: 3_000, mode };
    const first = await schedule({ ...options, retry: { attempts: 5, backoffMs: 30_000 } });
    await clock.advance(61_000);
    expect(attempts).toEqual([1]);
    const closed = first.close();
    await clock.advance(100);
    await closed;
    const second = await schedule(options);
    await clock.advance(10_000);
    const runs = (await second.history())?.runs.map(({ state, attempt }) => [state, attempt]);
    const closing = second.close();
    await clock.advance(1_000);
    await closing;
    if (mode === "at-most-once") expect([attempts, runs]).toEqual([[1], [["failed", 1]]]);
    else expect([attempts, runs]).toEqual([[1, 2], [["done", 2]]]);
    expect(clock.timers).toBe(0);
  },
);

test.each([
  { attempts: 0, backoffMs: 1 },
  { attempts: 2, backoffMs: -1 },
  { attempts: 1.5, backoffMs: 1 },
  3,
])("retry: %j is refused", async (retry) => {
  // @ts-expect-error -- plain JavaScript can pass anything
  const opened = schedule({ name: "x", cron: MINUTE, backend: memoryBackend(), job: broken, retry });
  await expect(opened).rejects.toMatchObject({ code: "invalid", message: expect.stringContaining("retry") });
});
