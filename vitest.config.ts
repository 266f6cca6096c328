import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/setup.ts"],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Most of the time tests wait (for leases, processes, servers): one worker more than the two cores of the smallest machine.
    maxWorkers: 3,
    coverage: {
      provider: "v8",
      include: ["src/**/*.ts"],
      reporter: ["text", "html", "lcovonly"],
    },
  },
});
