import { describe, expect, test } from "vitest";
import { SimClock } from "../../src/testing/sim/clock.js";
import { SimNode } from "../../src/testing/sim/node.js";
import { Oscillator } from "../../src/testing/sim/oscillator.js";
import { Random } from "../../src/testing/sim/random.js";
import { Scheduler } from "../../src/testing/sim/scheduler.js";

const quiet = (): boolean => false;

describe("chance", () => {
  test("a stream depends on seed and label alone", () => {
    const draw = (seed: number, label: string): number[] => {
      const random = new Random(seed, label);
      return [random.next(), random.next(), random.next()];
    };
    expect(draw(7, "a")).toEqual(draw(7, "a"));
    expect(draw(7, "a")).not.toEqual(draw(7, "b"));
    expect(draw(7, "a")).not.toEqual(draw(8, "a"));
  });

  test("it is uniform enough to explore with", () => {
    const random = new Random(1, "uniform");
    const buckets = Array.from({ length: 10 }, () => 0);
    for (let i = 0; i < 10_000; i++) buckets[Math.floor(random.next() * 10)]!++;
    for (const count of buckets) expect(Math.abs(count - 1000)).toBeLessThan(150);
  });
});

describe("scheduler", () => {
  test("runs events in the order of time, and drains promises between them, however deep", async () => {
    const scheduler = new Scheduler(1);
    const log: string[] = [];
    scheduler.at(20, () => log.push("second"));
    scheduler.at(10, () => {
      void (async () => {
        for (let i = 0; i < 50; i++) await Promise.resolve();
        log.push("fifty awaits later");
      })();
      log.push("first");
    });
    scheduler.at(30, () => log.push("third")).cancel();
    scheduler.at(200, () => log.push("beyond"));
    await scheduler.run(100, quiet);
    expect(log).toEqual(["first", "fifty awaits later", "second"]);
    expect(scheduler.now).toBe(100);
    expect(scheduler.count).toBe(2);
  });

  test("races within one instant are decided by the seed", async () => {
    const orderOf = async (seed: number): Promise<string> => {
      const scheduler = new Scheduler(seed);
      let order = "";
      for (const name of "abcdef") scheduler.at(5, () => (order += name));
      await scheduler.run(10, quiet);
      return order;
    };
    expect(await orderOf(1)).toBe(await orderOf(1));
    const orders = new Set(await Promise.all([1, 2, 3, 4, 5].map(orderOf)));
    expect(orders.size).toBeGreaterThan(1);
  });

  test("an event that throws ends the run with its error", async () => {
    const scheduler = new Scheduler(1);
    scheduler.at(1, () => {
      throw new Error("broken model");
    });
    await expect(scheduler.run(10, quiet)).rejects.toThrow("broken model");
  });
});

describe("nodes", () => {
  const world = (rate = 1): { scheduler: Scheduler; node: SimNode; clock: SimClock } => {
    const scheduler = new Scheduler(1);
    const node = new SimNode(1, 1, scheduler, new Oscillator(rate, { mono: 500, boot: 900, wall: 7_000 }));
    return { scheduler, node, clock: new SimClock(node.start(), "test") };
  };

  test("a clock runs at its own rate, and its timers with it", async () => {
    const { scheduler, clock } = world(1.1);
    let firedAt = 0;
    clock.after(1_100, () => (firedAt = scheduler.now));
    await scheduler.run(2_000, quiet);
    expect(firedAt).toBeGreaterThan(998);
    expect(firedAt).toBeLessThan(1_030);
    expect(clock.now()).toBeCloseTo(500 + 2_200);
    expect(clock.pending).toBe(0);
  });

  test("a suspended machine: monotonic time stands still, boot and wall go on, timers wait", async () => {
    const { scheduler, node, clock } = world();
    let firedAt = 0;
    clock.after(1_000, () => (firedAt = scheduler.now));
    scheduler.at(500, () => node.hinder("suspended", 3_500));
    scheduler.at(2_000, () => {
      expect(clock.now()).toBeCloseTo(1_000);
      expect(clock.wall()).toBe(9_000);
      expect(node.running).toBe(false);
    });
    await scheduler.run(10_000, quiet);
    expect(firedAt).toBeGreaterThan(3_998);
    expect(firedAt).toBeLessThan(4_040);
    expect(clock.boot() - clock.now()).toBeGreaterThan(3_000 + 400 - 20);
  });

  test("a paused process runs nothing, then everything it missed; a stalled one still answers its getters", async () => {
    const { scheduler, node, clock } = world();
    const log: string[] = [];
    for (const ms of [300, 100, 200])
      clock.after(ms, () => log.push(`${ms} at ${Math.round(scheduler.now)}`));
    scheduler.at(50, () => node.hinder("paused", 1_000));
    scheduler.at(400, () => {
      node.process?.deliver(() => log.push("message"));
      expect(node.running).toBe(false);
    });
    await scheduler.run(1_500, quiet);
    expect(log).toHaveLength(4);
    expect(log.filter((line) => line !== "message")).toEqual(["100 at 1000", "200 at 1000", "300 at 1000"]);
    node.hinder("stalled", 2_000);
    expect([node.running, node.turning]).toEqual([true, false]);
  });

  test("nothing of a killed process ever runs again", async () => {
    const { scheduler, node, clock } = world();
    let ran = false;
    clock.after(100, () => (ran = true));
    const { process } = node;
    scheduler.at(50, () => node.kill());
    scheduler.at(60, () => {
      clock.after(1, () => (ran = true));
      process?.deliver(() => (ran = true));
      node.start();
    });
    await scheduler.run(1_000, quiet);
    expect(ran).toBe(false);
    expect(node.process?.label).toBe("n1.2");
  });
});
