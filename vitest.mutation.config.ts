/** The fast tests, for `make test-mutation`: no server, no child process, no build. See scripts/mutation. */
import { defineConfig } from "vitest/config";

/** Files that replace modules of Node need a process of their own each; the others are much faster without. */
const MOCKS = ["test/fencing/{segments,sync}.test.ts"];
const isolate = process.env["CONCLAVE_MUTATION_ISOLATE"] === "yes";

export default defineConfig({
  test: {
    include: [
      "test/{kit,law,election,record,fencing}/*.test.ts",
      "test/lock/{lock,locks,first-line}.test.ts",
      "test/cron/{schedule,timetable,virtual}.test.ts",
      "test/kubernetes/lease.test.ts",
      "test/file/{envelope,names}.test.ts",
      "test/sim/regressions.test.ts",
    ],
    // Half a minute each: every microtask of a campaign, processes that are stopped.
    exclude: ["test/election/interleaving.test.ts", "test/fencing/pause.test.ts", ...(isolate ? [] : MOCKS)],
    testTimeout: 10_000,
    isolate,
  },
});
