import { describe, test } from "vitest";
import type { Backend } from "../../src/seam/backend.js";
import { memoryBackend } from "../../src/backends/memory/index.js";
import { conformanceSuite } from "../../src/testing/conformance/index.js";

const inside = "the store is inside the process: there is nothing between them that could fail";

/** The store lives and dies with the object: all share it, and closing one must not end it for the others. */
const shared = memoryBackend();
const share = async (): Promise<Backend> => shared;

describe("memory", () => {
  conformanceSuite({
    runner: { describe, test, skip: test.skip },
    backend: share,
    skips: [
      {
        test: "time counts from the question: askedAt lies before the sending, however long the request travels",
        reason: inside,
      },
      { test: "lost only if certain: a store that cannot be reached is not a loss", reason: inside },
      { test: "lost only if certain: an answer that is lost is not a loss", reason: inside },
      { test: "calls end when aborted: every call while the store does not answer", reason: inside },
      {
        test: "a cancelled campaign is gone: a grant whose answer was lost does not lock its own candidate out",
        reason: inside,
      },
      {
        test: "elections keep the law: a leader that is cut off ends its term, and the election recovers",
        reason: inside,
      },
      {
        test: "lost only if certain: a connection that died without a word is not a loss, and is replaced",
        reason: inside,
      },
      { test: "not knowing is a throw", reason: inside },
      { test: "closing leaves nothing behind: with calls that never reached the store", reason: inside },
      {
        test: "closing leaves nothing behind: with calls on a connection that died without a word",
        reason: inside,
      },
      { test: "a store that forgets", reason: "it lives and dies with those who use it" },
      { test: "a store whose clock jumps", reason: inside },
      { test: "real processes", reason: "the store is not shared between processes" },
    ],
  });
});
