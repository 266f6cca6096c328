/** A lease in two stores at once keeps the promises of one. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, describe, test } from "vitest";
import { both } from "../../src/both/index.js";
import { conformanceSuite } from "../../src/testing/conformance/index.js";
import { fileBackend } from "../../src/backends/file/index.js";
import { startCandidate } from "../support/children.js";

const [a, b] = ["a", "b"].map(() => mkdtempSync(join(tmpdir(), "conclave-both-"))) as [string, string];
afterAll(() => [a, b].forEach((directory) => rmSync(directory, { recursive: true, force: true })));

const url = `both:?a=${encodeURIComponent(pathToFileURL(a).href)}&b=${encodeURIComponent(pathToFileURL(b).href)}`;
const single = "faults of a store are that store's: they are tried on each alone, and on both in test/both";

describe("both", () => {
  conformanceSuite({
    runner: { describe, test, skip: test.skip },
    backend: async () => both(fileBackend({ directory: a }), fileBackend({ directory: b })),
    child: ({ election, ttlMs }) => startCandidate({ url, election, ttlMs }),
    skips: [
      "time counts from the question: askedAt lies before the sending, however long the request travels",
      "lost only if certain: a store that cannot be reached is not a loss",
      "lost only if certain: an answer that is lost is not a loss",
      "calls end when aborted: every call while the store does not answer",
      "a cancelled campaign is gone: a grant whose answer was lost does not lock its own candidate out",
      "elections keep the law: a leader that is cut off ends its term, and the election recovers",
      "lost only if certain: a connection that died without a word is not a loss, and is replaced",
      "not knowing is a throw",
      "closing leaves nothing behind: with calls that never reached the store",
      "closing leaves nothing behind: with calls on a connection that died without a word",
      "a store that forgets",
      "a store whose clock jumps",
    ].map((name) => ({ test: name, reason: single })),
  });
});
