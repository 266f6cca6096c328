/**
 * Calls that meet in the middle: `close()`, `resign()`, an abort, a revocation
 * and a passed deadline, each at every microtask of campaign, confirm, open,
 * work, renewal and release. Nothing here is random: a failure names the flow,
 * the strike and the number of the microtask.
 */
import { describe, expect, test } from "vitest";
import { FLOWS } from "./interleave/flows.js";
import type { Flow } from "./interleave/flows.js";
import { Microtasks } from "./interleave/microtasks.js";
import { Scene, TTL_MS } from "./interleave/scene.js";

type StrikeName = "close" | "resign" | "term.resign" | "abort" | "revoke" | "expire";

const STRIKES: Record<StrikeName, (scene: Scene) => void> = {
  close: (scene) => void scene.close(),
  resign: (scene) => scene.resign(),
  "term.resign": (scene) => scene.resignTerm(),
  abort: (scene) => scene.stop.abort(),
  revoke: (scene) => scene.revoke(),
  expire: (scene) => scene.clock.stall(TTL_MS),
};
const NAMES = Object.keys(STRIKES) as StrikeName[];

const LONG = process.env["CONCLAVE_LONG"] === "1";
/** How many microtasks lie between two strikes, at most. */
const APART = LONG ? 3 : 2;
const PAIRS: readonly (readonly [StrikeName, StrikeName])[] = LONG
  ? NAMES.flatMap((first) => NAMES.map((second) => [first, second] as const))
  : [
      ["abort", "close"],
      ["resign", "close"],
    ];

interface Planned {
  readonly at: number;
  readonly strike: StrikeName;
}

/** Before the flow makes its first call. */
const BEFORE = -1;
/** More virtual time than any of the flows takes, whatever befalls it. */
const STEPS = 40;

/** One flow, struck. Returns how many microtasks it had, and what went wrong. */
async function play(
  flow: Flow,
  planned: readonly Planned[],
): Promise<{ count: number; terms: number; violations: readonly string[] }> {
  const scene = new Scene(flow);
  const strikes = new Map(planned.map(({ at, strike }) => [at, () => STRIKES[strike](scene)]));
  const microtasks = new Microtasks(strikes);
  strikes.get(BEFORE)?.();
  await scene.clock.advance(0);
  await microtasks.watch(async () => {
    const settled = new AbortController();
    void flow
      .act(scene)
      .catch(() => {})
      .then(() => settled.abort());
    for (let i = 0; i < STEPS && !settled.signal.aborted; i++) await scene.clock.advance(TTL_MS / 4);
    if (!settled.signal.aborted) scene.violate("the flow has not come to its end");
  });
  microtasks.end();
  await scene.clock.advance(2 * TTL_MS);
  scene.checkSettled();
  const closing = scene.close();
  await scene.clock.advance(2 * TTL_MS);
  await closing;
  await scene.clock.advance(TTL_MS);
  scene.checkEnd();
  scene.dispose();
  for (const error of microtasks.errors) scene.violate(`a strike threw: ${String(error)}`);
  return { count: microtasks.count, terms: scene.terms, violations: scene.violations };
}

/** Plays the flow once for each plan; all that went wrong, by plan. */
async function sweep(flow: Flow, plans: readonly (readonly Planned[])[]): Promise<string[]> {
  const failures: string[] = [];
  for (const planned of plans) {
    const { violations } = await play(flow, planned);
    const when = planned.map(({ at, strike }) => `${strike} at microtask ${at}`).join(", ");
    for (const violation of violations) failures.push(`${flow.name}, ${when}: ${violation}`);
  }
  return failures;
}

describe.each(FLOWS)("$name", (flow) => {
  test("left alone, nothing goes wrong, and the count is the same each time", async () => {
    const first = await play(flow, []);
    const second = await play(flow, []);
    expect(first.violations).toEqual([]);
    expect(first.count).toBe(second.count);
    expect([first.terms, first.count > 10]).toEqual([flow.terms, true]);
  });

  test.each(["close", "abort"] as const)("%s before the first call: there is no term", async (strike) => {
    const { terms, violations } = await play(flow, [{ at: BEFORE, strike }]);
    expect(violations).toEqual([]);
    expect(terms).toBe(flow.name === "campaign again" && strike === "abort" ? 1 : 0);
  });

  test.each(NAMES)("%s at every microtask", async (strike) => {
    const { count } = await play(flow, []);
    const plans = Array.from({ length: count }, (_, at) => [{ at, strike }]);
    expect(await sweep(flow, plans)).toEqual([]);
  });

  test.each(PAIRS)("%s, and soon after it %s", { timeout: 600_000 }, async (first, second) => {
    const { count } = await play(flow, []);
    const plans: Planned[][] = [];
    for (let at = 0; at < count; at++)
      for (let later = 1; later <= APART; later++)
        plans.push([
          { at, strike: first },
          { at: at + later, strike: second },
        ]);
    expect(await sweep(flow, plans)).toEqual([]);
  });
});
