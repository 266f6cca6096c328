import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { cronTimetable, everyTimetable } from "../../src/cron/index.js";
import { Zone } from "../../src/cron/zone.js";

const at = (text: string): number => Date.parse(text);
const show = (instants: readonly number[]): string[] =>
  instants.map((instant) => new Date(instant).toISOString().replace(":00.000Z", "Z"));

async function runs(cron: string, zone: string, from: string, until: string): Promise<string[]> {
  const timetable = await cronTimetable(cron, zone);
  const found: number[] = [];
  for (let next = timetable.next(at(from)); next !== null && next <= at(until); next = timetable.next(next))
    found.push(next);
  // Both ways of looking must agree, to the last instant.
  expect(timetable.latest(at(from), at(until), 10_000)).toEqual(found);
  expect(timetable.latest(at(from), at(until), 2)).toEqual(found.slice(-2));
  return show(found);
}

describe("the change of clocks", () => {
  test("a local time that does not exist runs once, when the gap ends", async () => {
    // Berlin, 29 March 2026: 02:00 becomes 03:00 at 01:00 UTC.
    expect(await runs("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00Z", "2026-03-31T00:00Z")).toEqual([
      "2026-03-28T01:30Z",
      "2026-03-29T01:00Z",
      "2026-03-30T00:30Z",
    ]);
  });

  test("several times in the gap are one run, also together with the first time after it", async () => {
    expect(await runs("*/20 2,3 * * *", "Europe/Berlin", "2026-03-29T00:00Z", "2026-03-29T12:00Z")).toEqual([
      "2026-03-29T01:00Z",
      "2026-03-29T01:20Z",
      "2026-03-29T01:40Z",
    ]);
  });

  test("a local time that comes twice runs once, the first time", async () => {
    // Berlin, 25 October 2026: 03:00 becomes 02:00 at 01:00 UTC.
    expect(await runs("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00Z", "2026-10-26T12:00Z")).toEqual([
      "2026-10-25T00:30Z",
      "2026-10-26T01:30Z",
    ]);
    expect(await runs("*/20 2 * * *", "Europe/Berlin", "2026-10-24T12:00Z", "2026-10-25T12:00Z")).toEqual([
      "2026-10-25T00:00Z",
      "2026-10-25T00:20Z",
      "2026-10-25T00:40Z",
    ]);
  });

  test("what runs every hour goes by time elapsed", async () => {
    const hourly = await runs("30 * * * *", "Europe/Berlin", "2026-10-24T23:00Z", "2026-10-25T03:00Z");
    expect(hourly).toEqual([
      "2026-10-24T23:30Z",
      "2026-10-25T00:30Z",
      "2026-10-25T01:30Z",
      "2026-10-25T02:30Z",
    ]);
    const spring = await runs("*/30 * * * *", "Europe/Berlin", "2026-03-29T00:00Z", "2026-03-29T02:00Z");
    expect(spring).toEqual([
      "2026-03-29T00:30Z",
      "2026-03-29T01:00Z",
      "2026-03-29T01:30Z",
      "2026-03-29T02:00Z",
    ]);
  });

  test("every other hour keeps to the wall clock", async () => {
    expect(await runs("0 */2 * * *", "Europe/Berlin", "2026-10-24T21:30Z", "2026-10-25T06:00Z")).toEqual([
      "2026-10-24T22:00Z",
      "2026-10-25T00:00Z",
      "2026-10-25T03:00Z",
      "2026-10-25T05:00Z",
    ]);
  });

  test("half an hour is a change too", async () => {
    // Lord Howe, 5 April 2026: 02:00 becomes 01:30 at 15:00 UTC; 4 October: 02:00 becomes 02:30 at 15:30 UTC.
    expect(await runs("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00Z", "2026-04-05T20:00Z")).toEqual(
      ["2026-04-04T14:45Z", "2026-04-05T15:15Z"],
    );
    expect(await runs("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00Z", "2026-10-04T20:00Z")).toEqual(
      ["2026-10-03T15:30Z", "2026-10-04T15:15Z"],
    );
  });

  test("any pattern, any year: rising, once per local time, the same forwards and backwards", async () => {
    const zones = [
      "Europe/Berlin",
      "America/New_York",
      "Australia/Lord_Howe",
      "Asia/Kathmandu",
      "America/Sao_Paulo",
      "Africa/Casablanca",
      "UTC",
    ];
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...zones),
        fc.integer({ min: 0, max: 59 }),
        fc.integer({ min: 0, max: 23 }),
        fc.integer({ min: at("2015-01-01"), max: at("2035-01-01") }),
        async (name, minute, hour, from) => {
          const timetable = await cronTimetable(`${minute} ${hour} * * *`, name);
          const zone = new Zone(name);
          const until = from + 20 * 86_400_000;
          const found: number[] = [];
          for (let next = timetable.next(from)!; next <= until; next = timetable.next(next)!)
            found.push(next);
          expect(found.length).toBeGreaterThanOrEqual(19);
          expect(found.length).toBeLessThanOrEqual(21);
          const days = found.map((instant) => Math.floor(zone.naive(instant) / 86_400_000));
          expect(new Set(days).size).toBe(days.length);
          expect(timetable.latest(from, until, 100)).toEqual(found);
        },
      ),
      { numRuns: 60, seed: 6 },
    );
  });
});

test("what cannot be read is refused at once, with the reason", async () => {
  await expect(cronTimetable("99 * * * *", "UTC")).rejects.toMatchObject({ code: "invalid" });
  await expect(cronTimetable("hello", "UTC")).rejects.toThrow(/"hello" cannot be read/);
  await expect(cronTimetable("0 9 * * *", "Mars/Base")).rejects.toThrow(
    /time zone "Mars\/Base" is not known/,
  );
});

test("seconds, names and nicknames", async () => {
  expect(show([(await cronTimetable("*/15 0 9 * * MON", "UTC")).next(at("2026-11-14T00:00Z"))!])).toEqual([
    "2026-11-16T09:00Z",
  ]);
  expect(show([(await cronTimetable("@daily", "UTC")).next(at("2026-11-14T00:00Z"))!])).toEqual([
    "2026-11-15T00:00Z",
  ]);
});

test("an instant that is now counts as passed, not as coming", async () => {
  const nine = await cronTimetable("0 9 * * *", "UTC");
  const now = at("2026-11-16T09:00Z");
  expect(nine.next(now)).toBe(now + 86_400_000);
  expect(nine.next(now - 1)).toBe(now);
  expect(nine.latest(now - 1, now, 5)).toEqual([now]);
  expect(nine.latest(now, now, 5)).toEqual([]);
  expect(nine.latest(now - 1, now + 1, 5)).toEqual([now]);
  const every = everyTimetable(1000);
  expect(every.next(1000)).toBe(2000);
  expect(every.latest(0, 3500, 2)).toEqual([2000, 3000]);
});
