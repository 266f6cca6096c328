/**
 * The conformance suite: what every backend must do, whatever its store. The
 * test runner is handed in; nothing of it is imported here.
 */
import { ConformanceFailure, Inconclusive } from "./check.js";
import { groups } from "./groups/index.js";
import type { ConformanceOptions } from "./options.js";
import type { Case } from "./group.js";
import { printer } from "./print.js";
import { Stage } from "./stage.js";

/** Bounds are generous: what is asserted is that things happen, and in order, not that the machine is fast. */
const CASE_TIMEOUT_MS = 120_000;
const MOST_ATTEMPTS = 3;

export function conformanceSuite(options: ConformanceOptions): void {
  const { runner } = options;
  const skips = new Map((options.skips ?? []).map((skip) => [skip.test, skip.reason]));
  demandKnown([...skips]);
  const print = printer(options);
  for (const group of groups) {
    runner.describe(group.name, () => {
      for (const item of group.cases) {
        const title = `${group.name}: ${item.name}`;
        const reason = skips.get(title) ?? skips.get(group.name);
        if (reason === undefined) runner.test(item.name, () => attempt(item, options), CASE_TIMEOUT_MS);
        else {
          print(`skipped: ${title} (${reason})`);
          runner.skip?.(`${item.name} (${reason})`);
        }
      }
    });
  }
}

/** Names of all tests, as skips must spell them. */
export function conformanceTests(): string[] {
  return groups.flatMap((group) => group.cases.map((item) => `${group.name}: ${item.name}`));
}

async function attempt(item: Case, options: ConformanceOptions): Promise<void> {
  demandMeans(item, options);
  for (let left = MOST_ATTEMPTS; ; left--) {
    const failure = await runOnce(item, new Stage(options));
    if (failure === undefined) return;
    if (!(failure.error instanceof Inconclusive) || left <= 1) throw failure.error;
  }
}

/** What the test found counts first; then what could not be cleaned up after it. */
async function runOnce(item: Case, stage: Stage): Promise<{ readonly error: unknown } | undefined> {
  let failure: { readonly error: unknown } | undefined;
  try {
    await item.run(stage);
  } catch (error) {
    failure = { error };
  }
  const left = await stage.clear();
  if (failure === undefined && left.length > 0) failure = { error: new ConformanceFailure(left.join("; ")) };
  return failure;
}

function demandMeans({ needs = [] }: Case, { faults, child }: ConformanceOptions): void {
  for (const need of needs) {
    const there = need === "child" ? child !== undefined : faults?.[need] !== undefined;
    if (there) continue;
    const option = need === "child" ? "child" : `faults.${need}`;
    throw new Error(
      `this test needs the option ${option}: hand it in, or list the test in skips with a reason`,
    );
  }
}

/** A skip that excuses nothing was misspelt, or has outlived its test. */
function demandKnown(skips: readonly (readonly [string, string])[]): void {
  const known = new Set([...conformanceTests(), ...groups.map((group) => group.name)]);
  for (const [test, reason] of skips) {
    if (!known.has(test)) throw new Error(`skips names "${test}", which is no test of the conformance suite`);
    if (reason.trim() === "") throw new Error(`the skip of "${test}" has no reason`);
  }
}
