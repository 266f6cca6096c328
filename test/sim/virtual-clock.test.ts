import { expect, test } from "vitest";
import { Election, memoryBackend } from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";

test("timers fire in order, and what they set off settles before the next one", async () => {
  const clock = new VirtualClock();
  const log: string[] = [];
  clock.after(20, () => log.push("twenty"));
  clock.after(10, () => {
    log.push("ten");
    void Promise.resolve()
      .then(() => {})
      .then(() => log.push("after ten"));
    clock.after(5, () => log.push("fifteen"));
  });
  const cancelled = clock.after(12, () => log.push("never"));
  cancelled.cancel();
  await clock.advance(19);
  expect(log).toEqual(["ten", "after ten", "fifteen"]);
  expect(clock.now()).toBe(19);
  expect(clock.timers).toBe(1);
  await clock.advance(1);
  expect(log.at(-1)).toBe("twenty");
  await expect(clock.advance(-1)).rejects.toThrow(RangeError);
});

test("the three clocks: a sleep of the machine, and a date that is set", () => {
  const clock = new VirtualClock({ wallMs: 1_000_000 });
  clock.suspend(5_000);
  expect([clock.now(), clock.boot(), clock.wall()]).toEqual([0, 5_000, 1_005_000]);
  clock.jumpWall(-60_000);
  expect([clock.now(), clock.boot(), clock.wall()]).toEqual([0, 5_000, 945_000]);
});

/** What a user's test of leader code looks like. */
test("example: an hour of leader work in a moment, and what a stall does to it", async () => {
  const clock = new VirtualClock();
  const backend = memoryBackend({ clock });
  const stop = new AbortController();
  await using election = new Election({ name: "report", backend, clock, ttlMs: 10_000 });

  let reports = 0;
  const running = election.run(
    async (term) => {
      while (!term.signal.aborted) {
        await new Promise<void>((resolve) => clock.after(60_000, resolve));
        if (term.held) reports++;
      }
    },
    { signal: stop.signal },
  );

  await clock.advance(60 * 60_000);
  expect(election.leading).toBe(true);
  expect(reports).toBeGreaterThan(58);
  const { token } = election.term!;

  clock.stall(11_000); // longer than the ttl: nobody may act on this term any more
  expect(election.leading).toBe(false);
  await clock.advance(120_000);
  expect(election.term?.token).toBeGreaterThan(token);

  stop.abort();
  await clock.advance(60_000);
  await running;
  await election.close();
  expect(clock.timers).toBe(0);
});
