import { describe, expect, test } from "vitest";
import { memoryBackend } from "../../src/index.js";
import { resolveTiming } from "../../src/law/timing.js";
import type { TimingOptions } from "../../src/api/options.js";

const { guarantees } = memoryBackend();
const resolve = (options: TimingOptions) => resolveTiming(options, {}, guarantees);

describe("derived timings", () => {
  test("the defaults are those of the docs", () => {
    expect(resolve({})).toMatchObject({
      ttlMs: 10_000,
      marginMs: 1500,
      retryMs: 2000,
      attemptMs: 2500,
      drainMs: 5000,
    });
  });

  test.each([500, 700, 1000, 2000, 3000, 15_000, 3_600_000, 86_400_000])(
    "ttl %i leaves room for a renewal and a retry",
    (ttlMs) => {
      const { renewMs, attemptMs, marginMs } = resolve({ ttlMs });
      expect(marginMs).toBeGreaterThanOrEqual(Math.min(250, ttlMs));
      expect(renewMs + 2 * attemptMs).toBeLessThanOrEqual(ttlMs - marginMs + 0.001);
    },
  );

  test("a store's own timings hold for its own ttl, and only then", () => {
    const kubernetes = { ttlMs: 15_000, renewMs: 2000, renewDeadlineMs: 10_000, retryMs: 2000 };
    expect(resolveTiming({}, kubernetes, guarantees)).toMatchObject({ renewMs: 2000, marginMs: 5000 });
    expect(resolveTiming({ ttlMs: 3000 }, kubernetes, guarantees).renewMs).toBe(1000);
  });
});

describe("refused", () => {
  const evil = [0, -1, Number.NaN, Infinity, 2 ** 31, 1e12, "10s", "10", {}, 10n];
  for (const name of ["ttlMs", "renewMs", "renewDeadlineMs", "retryMs", "attemptMs", "maxTermMs"] as const) {
    test.each(evil)(`${name} = %s`, (value) => {
      expect(() => resolve({ [name]: value as number })).toThrow(new RegExp(name));
    });
  }

  test("impossible combinations, with their arithmetic", () => {
    expect(() => resolve({ ttlMs: 3000, renewMs: 2000, attemptMs: 1000 })).toThrow(
      "2000) + 2 x attemptMs (1000) = 4000",
    );
    expect(() => resolve({ ttlMs: 3000, renewDeadlineMs: 3000 })).toThrow(/at most 95 % of ttlMs/);
    expect(() => resolve({ ttlMs: 200 })).toThrow(/renewDeadlineMs/);
  });

  test("a ttl below what the store can keep", () => {
    const coarse = { ...guarantees, ttl: { minMs: 2000, stepMs: 1000 } };
    expect(() => resolveTiming({ ttlMs: 1500 }, {}, coarse)).toThrow(/no lease shorter than 2000 ms/);
  });
});
