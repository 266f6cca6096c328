/** The fast tests, for `make test-mutation`: no server, no child process, no build. See scripts/mutation. */
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: [
      "test/{core,record}/*.test.ts",
      "test/lock/{lock,first-line}.test.ts",
      "test/fencing/*.test.ts",
      "test/cron/{schedule,timetable,virtual}.test.ts",
      "test/kubernetes/lease.test.ts",
      "test/file/{envelope,names}.test.ts",
      "test/sim/regressions.test.ts",
    ],
    // Half a minute each: every microtask of core, processes that are stopped.
    exclude: ["test/core/interleaving.test.ts", "test/fencing/pause.test.ts"],
    testTimeout: 10_000,
  },
});
