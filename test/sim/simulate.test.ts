import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Election } from "../../src/index.js";
import { FAULT_KINDS, planOf, shrink, simulate, STORE_KINDS } from "../../src/testing/index.js";
import type { Plan, SubjectFactory } from "../../src/testing/index.js";
import { ETCD_FAULT_KINDS } from "../../src/testing/sim/etcd-plan.js";
import { RECORD_FAULT_KINDS } from "../../src/testing/sim/record-plan.js";
import { LOCK_FAULT_KINDS } from "../../src/testing/sim/lock-plan.js";
import { useFastAbort, useRealAbort } from "./fast-abort.js";
import { rejections } from "./rejections.js";

describe("plans", () => {
  test("a plan is data, and depends on its seed alone", () => {
    const plan = planOf(42);
    expect(planOf(42)).toEqual(plan);
    expect(planOf(43)).not.toEqual(plan);
    expect(JSON.parse(JSON.stringify(plan))).toEqual(plan);
  });

  test("a share of the seeds runs a schedule; those that do not are drawn as if there were none", () => {
    const seeds = Array.from({ length: 300 }, (_, i) => i + 1);
    const scheduled = seeds.filter((seed) => planOf(seed).cron !== null);
    expect(scheduled.length).toBeGreaterThan(30);
    expect(scheduled.length).toBeLessThan(80);
    for (const seed of seeds) {
      const subject = scheduled.includes(seed) ? "schedule" : "election";
      expect(planOf(seed, { subject })).toEqual(planOf(seed));
    }
  });

  test("every seed has its 60 seconds, its 8 faults and a quiet end; clocks stay within the margin", () => {
    const kinds = new Set<string>();
    const stores = new Set<string>();
    for (let seed = 1; seed <= 500; seed++) {
      const plan = planOf(seed);
      stores.add(plan.store);
      expect(plan.horizonMs).toBeGreaterThanOrEqual(60_000);
      expect(plan.faults.length).toBeGreaterThanOrEqual(8);
      expect(plan.rates.high / plan.rates.low).toBeLessThan(1 / 0.85);
      expect(plan.healAtMs).toBeLessThanOrEqual(plan.horizonMs * 0.8);
      // Else nobody would look whether someone leads in the end.
      expect(plan.healAtMs + (3 * plan.ttlMs) / plan.rates.low).toBeLessThanOrEqual(plan.horizonMs);
      for (const fault of plan.faults) {
        kinds.add(fault.kind);
        expect(fault.t + fault.dur).toBeLessThan(plan.healAtMs);
      }
    }
    const drawn = [FAULT_KINDS, ETCD_FAULT_KINDS, RECORD_FAULT_KINDS, LOCK_FAULT_KINDS];
    expect(kinds.size).toBe(drawn.flat().length);
    expect(stores.size).toBe(STORE_KINDS.length);
  });
});

describe("simulation", () => {
  test.each(STORE_KINDS)("the same plan gives the same trace, line by line (%s)", async (store) => {
    const plan = planOf(5, { stores: [store] });
    const first = await simulate(plan, { trace: true, rejections });
    const second = await simulate(plan, { trace: true, rejections });
    expect(second.trace).toEqual(first.trace);
    expect(second.hash).toBe(first.hash);
    expect(first.violation).toBeUndefined();
    expect(first.terms).toBeGreaterThan(0);
    expect((await simulate(planOf(6, { stores: [store] }))).hash).not.toBe(first.hash);
  });

  test.each(STORE_KINDS)("a schedule gives the same trace, too, with croner (%s)", async (store) => {
    const drawn = planOf(5, { stores: [store], subject: "schedule" });
    const plan: Plan = { ...drawn, cron: { ...drawn.cron!, cron: "*/2 * * * * *" } };
    const first = await simulate(plan, { trace: true, rejections });
    const second = await simulate(plan, { trace: true, rejections });
    expect(second.trace).toEqual(first.trace);
    expect(first.violation).toBeUndefined();
    expect(first.cron?.runs).toBeGreaterThan(10);
  });

  test("an election of your own has no schedule to run", async () => {
    const plan = planOf(5, { subject: "schedule" });
    const { cron, violation } = await simulate(plan, {
      elect: (options) => new Election(options),
      rejections,
    });
    expect([cron, violation]).toEqual([undefined, undefined]);
  });

  describe("many seeds", () => {
    beforeAll(useFastAbort);
    afterAll(useRealAbort);

    test("150 schedules, no violation", { timeout: 240_000 }, async () => {
      const terms: number[] = [];
      let runs = 0;
      for (let seed = 1; seed <= 150; seed++) {
        const outcome = await simulate(planOf(seed), { rejections });
        expect(outcome.violation, `seed ${seed}`).toBeUndefined();
        terms.push(outcome.terms);
        runs += outcome.cron?.runs ?? 0;
      }
      expect(runs).toBeGreaterThan(150);
      expect(terms.toSorted((a, b) => a - b)[75]).toBeGreaterThanOrEqual(5);
    });
  });
});

describe("a planted violation", () => {
  /** Terms that answer "held" forever, as a flag that nobody clears would. */
  const planted: SubjectFactory = (options) => {
    const election = new Election(options);
    election.on("elected", ({ term }) =>
      Object.defineProperty(term, "held", { get: () => !term.signal.aborted }),
    );
    return election;
  };
  const run = (plan: Plan) => simulate(plan, { elect: planted, rejections, trace: true });

  test("is found, and its plan is shrunk to what it takes", { timeout: 120_000 }, async () => {
    let failed = await run(planOf(1, { stores: ["observer"] }));
    for (let seed = 2; failed.violation?.rule !== "two-leaders"; seed++) {
      failed = await run(planOf(seed, { stores: ["observer"] }));
    }
    const { outcome } = await shrink(failed, { run });
    expect(outcome.violation?.rule).toBe("two-leaders");
    expect(outcome.plan.faults.length).toBeLessThanOrEqual(2);
    expect(outcome.plan.nodes).toBe(2);
    expect(outcome.plan.latency.tail).toBe(0);
    // The small plan is data as well: it fails the same way again.
    const again = await run(JSON.parse(JSON.stringify(outcome.plan)) as Plan);
    expect(again.violation).toEqual(outcome.violation);
    expect(again.trace?.at(-1)).toContain("VIOLATION two-leaders");
  });

  test("what does not fail is left alone", async () => {
    const fine = await simulate(planOf(1), { rejections });
    const { outcome, tries } = await shrink(fine, { run: (plan) => simulate(plan) });
    expect([outcome, tries]).toEqual([fine, 0]);
  });
});
