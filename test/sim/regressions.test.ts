/**
 * Plans that once failed, made small and kept as data: seeds change their meaning
 * when the simulator learns something new, plans do not. (Bugs that many seeds
 * find are kept as mutants instead.)
 */
import { expect, test } from "vitest";
import { simulate } from "../../src/testing/index.js";
import type { Plan } from "../../src/testing/index.js";
import { rejections } from "./rejections.js";

interface Regression {
  readonly story: string;
  readonly plan: Plan;
}

const REGRESSIONS: readonly Regression[] = [
  {
    story:
      "a machine slept between winning and opening its term; the shared lease confirmed it with a renewal asked for before the sleep",
    plan: {
      seed: 8025,
      store: "queue",
      nodes: 3,
      ttlMs: 2400,
      retryMs: 829,
      horizonMs: 16401,
      healAtMs: 16401,
      latency: { medianMs: 7.739, sigma: 0, tail: 0, tailMaxMs: 6000 },
      loss: { request: 0, answer: 0 },
      duplicate: 0,
      rates: { low: 0.92, high: 1.022 },
      watch: false,
      maxTermMs: null,
      sameId: false,
      ttlShare: 1,
      foreign: false,
      laggard: 2,
      chatty: false,
      oneKey: false,
      side: false,
      probe: "seldom",
      faults: [
        { t: 8000, kind: "errors", target: "leader", dur: 3613, arg: 0.131 },
        { t: 9721, kind: "delay", target: "leader", dur: 3693, arg: 0.972 },
        { t: 13000, kind: "suspend", target: "n1", dur: 3400, arg: 0.964 },
      ],
    },
  },
  {
    story:
      "a lost term's key stayed under a shared lease for ever: another election renewed the lease before its own timer, which would have removed the key, ever came",
    plan: {
      seed: 24542,
      store: "queue",
      nodes: 2,
      ttlMs: 2500,
      retryMs: 768,
      horizonMs: 68000,
      healAtMs: 54400,
      latency: { medianMs: 1.796, sigma: 0, tail: 0, tailMaxMs: 6000 },
      loss: { request: 0, answer: 0 },
      duplicate: 0,
      rates: { low: 0.913, high: 1.013 },
      watch: false,
      maxTermMs: null,
      sameId: false,
      ttlShare: 1,
      foreign: false,
      laggard: 0,
      chatty: false,
      oneKey: false,
      side: true,
      probe: "always",
      faults: [
        { t: 15000, kind: "stall", target: "n1", dur: 3000, arg: 0.745 },
        { t: 15000, kind: "suspend", target: "next", dur: 200, arg: 0.265 },
      ],
    },
  },
];

test.each(REGRESSIONS)("$story", async ({ plan }) => {
  const { violation } = await simulate(plan, { rejections });
  expect(violation).toBeUndefined();
});
