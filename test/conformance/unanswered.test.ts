/** The suite knows three answers too: a connection that breaks while a lease is kept is neither "extended" nor "lost". */
import { expect, test } from "vitest";
import type { Backend, Hold } from "../../src/seam/backend.js";
import { memoryBackend } from "../../src/backends/memory/index.js";
import { Inconclusive } from "../../src/testing/conformance/check.js";
import { expiry } from "../../src/testing/conformance/groups/expiry.js";
import { Stage } from "../../src/testing/conformance/stage.js";

const store = memoryBackend();

/** Of a lease's extensions, those fail that `fails` says; the write of a failed one may have happened. */
function failing(fails: (count: number) => boolean): () => Promise<Backend> {
  return async () => ({
    name: store.name,
    guarantees: store.guarantees,
    records: store.records,
    observe: (...args) => store.observe(...args),
    [Symbol.asyncDispose]: async () => {},
    campaign: async (...args) => {
      const hold = await store.campaign(...args);
      return hold === null ? null : withFaults(hold, fails);
    },
  });
}

function withFaults(hold: Hold, fails: (count: number) => boolean): Hold {
  let count = 0;
  const answered = async <T>(answer: Promise<T>): Promise<T> => {
    const known = await answer;
    if (fails(count++)) throw new Error("connection lost");
    return known;
  };
  return {
    token: hold.token,
    ttlMs: hold.ttlMs,
    asked: hold.asked,
    renew: (options) => answered(hold.renew(options)),
    proclaim: (value, options) => answered(hold.proclaim(value, options)),
    release: (options) => hold.release(options),
  };
}

async function run(name: string, backend: () => Promise<Backend>): Promise<void> {
  const stage = new Stage({ backend, runner: { describe: () => {}, test: () => {} } });
  try {
    await expiry.cases.find((item) => item.name === name)!.run(stage);
  } finally {
    await stage.clear();
  }
}

test.each(["but not if they renew", "and proclaiming is renewing"])(
  "%s: a call that fails once is asked again",
  (name) =>
    run(
      name,
      failing((count) => count % 3 === 0),
    ),
);

test.each(["but not if they renew", "and proclaiming is renewing"])(
  "%s: a store that never answers proves nothing, and the error is named",
  async (name) => {
    const done = run(
      name,
      failing(() => true),
    );
    await expect(done).rejects.toThrow(/the last one failed: Error: connection lost/);
    await expect(done).rejects.toBeInstanceOf(Inconclusive);
  },
);
