/** The pure decisions: no clock, no store, no job. */
import { expect, test } from "vitest";
import { everyTimetable } from "../../src/cron/index.js";
import { decodeLedger, encodeLedger, record } from "../../src/cron/ledger.js";
import type { Ledger, Run, RunState } from "../../src/cron/ledger.js";
import { applyClaim, applyEnd, decide, firstLedger, takeOver } from "../../src/cron/schedule.js";
import type { Actor, Policy } from "../../src/cron/schedule.js";

const policy: Policy = {
  mode: "at-most-once",
  misfire: "once",
  graceMs: 1000,
  maxCatchUp: 3,
  overlap: "skip",
  maxAttempts: 3,
  retry: { attempts: 1, backoffMs: 0 },
  keep: 10,
};
const ticks = everyTimetable(1000);
const actor = (now: number, token = 5n): Actor => ({ token, by: "me", now });
const run = (at: number, state: RunState, token = 4n, attempt = 1): Run => ({
  at,
  attempt,
  state,
  token,
  by: "other",
  startedAt: at,
  endedAt: null,
  note: null,
});
const at = (cursor: number, ...runs: Run[]): Ledger => ({ cursor, runs });
const none = new Set<number>();

test("nothing is due before the next instant", () => {
  expect(decide(at(5000), ticks, policy, actor(5999), none)).toEqual({ kind: "wait", until: 6000 });
});

test("a clock that was set back runs nothing again", () => {
  expect(decide(at(5000), ticks, policy, actor(1500), none)).toEqual({ kind: "wait", until: 6000 });
});

test("the instant comes from the timetable, not from the clock", () => {
  const decision = decide(at(5000), ticks, policy, actor(6437), none);
  expect(decision).toMatchObject({
    kind: "claim",
    skipped: null,
    run: { at: 6000, attempt: 1, state: "running", token: 5n },
  });
});

test("misfire once: the newest runs, the others are told", () => {
  expect(decide(at(5000), ticks, policy, actor(8100), none)).toMatchObject({
    kind: "claim",
    run: { at: 8000 },
    skipped: { at: 6000, until: 7000, count: 2, state: "skipped" },
  });
});

test("misfire all: every one in turn, the oldest beyond the bound are told", () => {
  const all: Policy = { ...policy, misfire: "all" };
  expect(decide(at(5000), ticks, all, actor(7100), none)).toMatchObject({ run: { at: 6000 }, skipped: null });
  expect(decide(at(6000), ticks, all, actor(7100), none)).toMatchObject({ run: { at: 7000 }, skipped: null });
  expect(decide(at(5000), ticks, all, actor(19_100), none)).toMatchObject({
    run: { at: 17_000 },
    skipped: { at: 6000, until: 16_000 },
  });
});

test("misfire skip: late ones are told and not run", () => {
  const skip: Policy = { ...policy, misfire: "skip" };
  expect(decide(at(5000), ticks, skip, actor(6900), none)).toMatchObject({
    kind: "claim",
    run: { at: 6000 },
  });
  expect(decide(at(5000), ticks, skip, actor(8100), none)).toMatchObject({
    kind: "claim",
    run: { at: 8000 },
    skipped: { at: 6000, until: 7000 },
  });
  // However many are still in time: the bound is for catching up with all.
  const patient: Policy = { ...skip, graceMs: 8000 };
  expect(decide(at(5000), ticks, patient, actor(19_100), none)).toMatchObject({
    run: { at: 12_000 },
    skipped: { at: 6000, until: 11_000 },
  });
  const tight: Policy = { ...skip, graceMs: 50 };
  expect(decide(at(5000), ticks, tight, actor(6900), none)).toMatchObject({
    kind: "note",
    run: { at: 6000, state: "skipped" },
  });
});

test("overlap: skip, wait, or side by side", () => {
  const ledger = at(5000, run(5000, "running", 5n));
  const active = new Set([5000]);
  const of = (overlap: Policy["overlap"]) =>
    decide(ledger, ticks, { ...policy, overlap }, actor(6100), active);
  expect(of("skip")).toMatchObject({ kind: "note", run: { at: 6000, state: "skipped" } });
  expect(of("wait")).toEqual({ kind: "busy" });
  expect(of("parallel")).toMatchObject({ kind: "claim", run: { at: 6000 } });
});

test("at most once: what another leader claimed and did not finish is missed, told, and not run again", () => {
  const { ledger, missed } = takeOver(at(6000, run(5000, "done"), run(6000, "running")), policy, actor(6500));
  expect(missed).toMatchObject([{ at: 6000, state: "missed", by: "other" }]);
  expect(decide(ledger, ticks, policy, actor(6500), none)).toEqual({ kind: "wait", until: 7000 });
});

test("at least once: it is run again, with the attempt number, and given up in the end", () => {
  const twice: Policy = { ...policy, mode: "at-least-once" };
  const { ledger, missed } = takeOver(at(6000, run(6000, "running")), twice, actor(6500));
  expect(missed).toEqual([]);
  expect(decide(ledger, ticks, twice, actor(6500), none)).toMatchObject({
    kind: "claim",
    run: { at: 6000, attempt: 2, token: 5n },
  });
  const worn = at(6000, run(6000, "running", 4n, 3));
  expect(decide(worn, ticks, twice, actor(6500), none)).toMatchObject({
    kind: "note",
    run: { at: 6000, state: "missed" },
  });
});

test("what was claimed but never begun may be run in either mode", () => {
  const ledger = at(6000, run(6000, "released"));
  expect(decide(ledger, ticks, policy, actor(6500), none)).toMatchObject({
    kind: "claim",
    run: { at: 6000, attempt: 1 },
  });
});

test("a claim applied twice changes nothing; the end is told only by who claimed", () => {
  const claimed = run(6000, "running", 5n);
  const once = applyClaim(at(5000), claimed, null, policy);
  expect(applyClaim(once, claimed, null, policy)).toEqual(once);
  expect(once.cursor).toBe(6000);
  const done = applyEnd(once, { ...claimed, state: "done" }, policy);
  expect(done.runs).toMatchObject([{ state: "done" }]);
  const taken = applyClaim(once, run(6000, "running", 6n, 2), null, policy);
  expect(applyEnd(taken, { ...claimed, state: "done" }, policy)).toEqual(taken);
});

test("a claim of what is dealt with is refused, however it came about", () => {
  const done = at(6000, run(6000, "done", 5n));
  expect(() => applyClaim(done, run(6000, "running", 5n), null, policy)).toThrow(/dealt with already/);
  expect(() => applyClaim(at(6000), run(5000, "running", 5n), null, policy)).toThrow(/dealt with already/);
});

test("many that are passed over are told from the first to the last, whatever is kept of those between", () => {
  expect(decide(at(5000), ticks, { ...policy, maxCatchUp: 1 }, actor(19_100), none)).toMatchObject({
    run: { at: 19_000 },
    skipped: { at: 6000, until: 18_000 },
  });
});

test("how an old run ended is told once, however many newer ones there are", () => {
  const newer = [2, 3, 4].map((instant) => run(instant, "done"));
  const missed = record(at(4, run(1, "running"), ...newer), [run(1, "missed")], 2);
  expect(missed.runs.map((r) => r.at)).toEqual([1, 4]);
  expect(record(missed, [run(5, "running")], 2).runs.map((r) => r.at)).toEqual([4, 5]);
});

test("history is bounded, open runs are never dropped", () => {
  let ledger = at(0, run(1, "running"));
  for (let i = 2; i < 50; i++) ledger = record(ledger, [run(i, "done")], 5);
  expect(ledger.runs.map((r) => r.at)).toEqual([1, 46, 47, 48, 49]);
});

test("the record survives the store, and what is not ours is refused", () => {
  const ledger = at(6000, { ...run(6000, "failed", 2n ** 60n + 1n), note: "x", until: 7000, count: 2 });
  expect(decodeLedger(encodeLedger(ledger))).toEqual(ledger);
  for (const text of ["", "{}", "[]", '{"v":2,"cursor":1,"runs":[]}', '{"v":1,"cursor":1,"runs":[{}]}'])
    expect(() => decodeLedger(text)).toThrow(/cannot be read by this version/);
});

test("however large the notes, the record stays one that can be read", () => {
  let ledger = at(0);
  for (let n = 1; n <= 300; n++) {
    const note = ['"\u0000', "電話", "plain"][n % 3]!.repeat(5_000);
    ledger = record(ledger, [{ ...run(n * 1000, "failed"), note, by: `"${"\\".repeat(98)}"` }], 200);
  }
  const text = encodeLedger(ledger);
  expect(Buffer.byteLength(JSON.stringify(text))).toBeLessThan(60 * 1024); // the file store takes 64 KiB
  expect(decodeLedger(text)).toEqual(ledger);
  expect(ledger.runs.length).toBeGreaterThan(20);
  expect(ledger.runs.at(-1)).toMatchObject({ at: 300_000 });
  // What is not settled yet is no history, and stays.
  const open = record(ledger, [run(1, "running")], 200);
  expect(record(open, [{ ...run(301_000, "failed"), note: "x".repeat(900) }], 200).runs[0]).toMatchObject({
    at: 1,
  });
});

test("side by side has a bound: a job that never ends must not fill the store", () => {
  const parallel: Policy = { ...policy, overlap: "parallel" };
  const instants = Array.from({ length: 50 }, (_, n) => (n + 1) * 1000);
  const ledger = at(50_000, ...instants.map((instant) => run(instant, "running", 5n)));
  expect(decide(ledger, ticks, parallel, actor(51_000), new Set(instants))).toMatchObject({
    kind: "note",
    run: { at: 51_000, state: "skipped" },
  });
  expect(decide(ledger, ticks, parallel, actor(51_000), new Set(instants.slice(1)))).toMatchObject({
    kind: "claim",
    run: { at: 51_000 },
  });
});

test("what campaigns in the record is checked: times, attempts and counts that cannot be", () => {
  const good = JSON.parse(encodeLedger(at(1000, run(1000, "done")))) as { runs: Record<string, unknown>[] };
  const hostile: Record<string, unknown>[] = [
    { cursor: 1e300 },
    { cursor: -9e15 },
    ...[1e300, "1000", null].map((value) => ({ runs: [{ ...good.runs[0], at: value }] })),
    ...[1e300, -1, 1.5, "1"].map((attempt) => ({ runs: [{ ...good.runs[0], attempt }] })),
    { runs: [{ ...good.runs[0], startedAt: 1e300 }] },
    { runs: [{ ...good.runs[0], until: 1e300, count: 2 }] },
    { runs: [{ ...good.runs[0], until: 2000, count: -7 }] },
    { runs: [null] },
    { runs: [good.runs[0], good.runs[0]] },
  ];
  for (const change of hostile)
    expect(() => decodeLedger(JSON.stringify({ ...good, ...change }))).toThrow(/cannot be read/);
});

test("catching up with all is in turn, also where overlaps are skipped: what was due before a run began is no overlap", () => {
  const all: Policy = { ...policy, misfire: "all" };
  // 6000 to 8000 were due when the run of 6000 began at 8100; 9000 came while it went on.
  const ledger = at(6000, { ...run(6000, "running", 5n), startedAt: 8100 });
  expect(decide(ledger, ticks, all, actor(9050), new Set([6000]))).toEqual({ kind: "busy" });
  const caughtUp = at(8000, { ...run(8000, "running", 5n), startedAt: 8100 });
  expect(decide(caughtUp, ticks, all, actor(9050), new Set([8000]))).toMatchObject({
    kind: "note",
    run: { at: 9000, state: "skipped" },
  });
});

test("the end of an earlier attempt does not settle a later one of the same leader", () => {
  const second = run(6000, "running", 5n, 2);
  const ledger = at(6000, second);
  expect(applyEnd(ledger, { ...second, attempt: 1, state: "done" }, policy)).toBe(ledger);
  expect(applyEnd(ledger, { ...second, state: "done" }, policy).runs).toMatchObject([
    { at: 6000, attempt: 2, state: "done" },
  ]);
});

test("a first leader whose clock was set back since its start does not pass over what is due by that clock", () => {
  const { ledger, missed } = firstLedger(ticks, policy, actor(3500), 9000);
  expect([ledger.cursor, missed]).toEqual([3500, []]);
  expect(decide(ledger, ticks, policy, actor(4000), none)).toMatchObject({
    kind: "claim",
    run: { at: 4000 },
  });
});
