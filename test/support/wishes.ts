/** The conformance suite on stores that cannot follow all wishes about who leads next. */
import type { Wish } from "../../src/seam/backend.js";
import type { Runner, Skip } from "../../src/testing/conformance/index.js";

const TESTS: Record<Wish, readonly string[]> = {
  heir: [
    "the one who is named leads, though others waited longer and look more often",
    "handed round by name, nobody leads in between, and tokens rise",
    "who is named does not stand back",
  ],
  "stand-back": [
    "who stands back lets another go first, though it waited longer",
    "who is named does not stand back",
  ],
};

export function without(wishes: readonly Wish[], reason: string): readonly Skip[] {
  const tests = new Set(wishes.flatMap((wish) => TESTS[wish]));
  return [...tests].map((test) => ({ test: `who leads next: ${test}`, reason }));
}

const GROUPS = ["guarantees are declared", "who leads next"];

/** Of the whole suite, no more than what is about wishes. */
export function wishesOnly(runner: Runner): Runner {
  return { ...runner, describe: (name, body) => GROUPS.includes(name) && runner.describe(name, body) };
}
