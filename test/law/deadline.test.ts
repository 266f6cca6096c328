import { expect, test } from "vitest";
import type { Clock } from "../../src/index.js";
import { readClocks, systemClock } from "../../src/index.js";
import { Deadline } from "../../src/law/deadline.js";

/** Three clocks that are set by hand. */
function handClock() {
  const at = { now: 1000, wall: 1e12, boot: 5000 };
  const clock: Clock = {
    ...at,
    now: () => at.now,
    wall: () => at.wall,
    boot: () => at.boot,
    after: () => ({ cancel() {} }),
    random: () => 0,
    uniqueId: () => "0",
  };
  return {
    clock,
    pass(ms: number) {
      at.now += ms;
      at.wall += ms;
      at.boot += ms;
    },
    suspend(ms: number) {
      at.wall += ms;
      at.boot += ms;
    },
    setWall(ms: number) {
      at.wall += ms;
    },
  };
}

const MARGIN = 300;
const TTL = 2000;

function held() {
  const hand = handClock();
  const deadline = new Deadline(hand.clock, MARGIN, readClocks(hand.clock), TTL);
  return { ...hand, deadline };
}

test("it counts from the question and ends a margin early", () => {
  const { deadline, pass } = held();
  pass(1699);
  expect(deadline.remainingMs()).toBe(1);
  pass(1);
  expect(deadline.remainingMs()).toBe(0);
});

test("an answer with an older question never moves it back", () => {
  const { deadline, clock, pass } = held();
  pass(500);
  deadline.extend({ ...readClocks(clock), now: 100 }, TTL);
  expect(deadline.remainingMs()).toBe(1200);
});

test.each([3_600_000, -3_600_000, 86_400_000, -1e12, 400, -400])(
  "setting the wall clock by %i ms changes nothing",
  (jump) => {
    const { deadline, pass, setWall } = held();
    pass(100);
    setWall(jump);
    expect(deadline.remainingMs()).toBe(1600);
    pass(100);
    expect(deadline.remainingMs()).toBe(1500);
  },
);

test.each([80, 1000, 60_000])("a machine that slept %i ms has lost the term", (slept) => {
  const { deadline, pass, suspend } = held();
  pass(100);
  suspend(slept);
  expect(deadline.remainingMs()).toBeLessThanOrEqual(0);
});

test("a sleep is noticed after the wall clock was set back, too", () => {
  const { deadline, pass, suspend, setWall } = held();
  pass(100);
  setWall(-3_600_000);
  expect(deadline.remainingMs()).toBeGreaterThan(0);
  suspend(5000);
  expect(deadline.remainingMs()).toBeLessThanOrEqual(0);
});

test("a sleep after the question of a shared lease counts, however late its answer is taken", () => {
  const { deadline, clock, pass, suspend } = held();
  pass(100);
  const asked = readClocks(clock);
  pass(100);
  suspend(5000);
  deadline.extend(asked, TTL);
  expect(deadline.remainingMs()).toBeLessThanOrEqual(0);
});

test("a sleep between grant and confirmation counts", () => {
  const { clock, pass, suspend } = handClock();
  const asked = readClocks(clock);
  pass(100);
  suspend(5000);
  expect(new Deadline(clock, MARGIN, asked, TTL).remainingMs()).toBeLessThanOrEqual(0);
});

test("once over by sleep, time alone does not bring it back", () => {
  const { deadline, suspend, setWall } = held();
  suspend(5000);
  expect(deadline.remainingMs()).toBeLessThanOrEqual(0);
  setWall(-5000);
  expect(deadline.remainingMs()).toBeLessThanOrEqual(0);
});

test("the system's clocks agree about the pace of time", async () => {
  const before = readClocks(systemClock);
  await new Promise<void>((resolve) => void systemClock.after(60, resolve));
  const after = readClocks(systemClock);
  expect(after.now - before.now).toBeGreaterThanOrEqual(58);
  expect(after.boot - before.boot).toBeGreaterThanOrEqual(30);
});
