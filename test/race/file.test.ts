/**
 * Leaders on files, really stopped and really killed: no instant with two
 * leaders, no stale write accepted. Half of it without the dead-process rule.
 * CONCLAVE_LONG=1: at least 200 stops and 200 kills that hit the leader.
 */
import type { ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { race } from "../../src/testing/race/index.js";
import type { RaceRequest } from "../../src/testing/race/index.js";
import { ROOT } from "../shape/sources.js";
import { startCandidate } from "../support/children.js";

const long = process.env["CONCLAVE_LONG"] === "1";
// A few more than are promised: now and then a leader loses its leadership just as the blow falls.
const faults = long ? { stop: 212, kill: 212 } : { stop: 12, kill: 12 };
const elections = long ? 10 : 6;

const store = mkdtempSync(join(tmpdir(), "conclave-race-store-"));
afterAll(() => rmSync(store, { recursive: true, force: true }));

const on =
  (url: string, believesSignal = false) =>
  (request: RaceRequest): ChildProcess =>
    startCandidate({ ...request, url, believesSignal });

describe("file, leaders stopped and killed", () => {
  it(
    `${faults.stop} stops beyond the lease and ${faults.kill} kills: never two leaders, no stale write`,
    async () => {
      const url = pathToFileURL(store).href;
      const half = { stop: faults.stop / 2, kill: faults.kill / 2 };
      const { verdict, text } = await race(join(ROOT, "artifacts/race/file"), [
        { start: on(url), prefix: "rule-on", elections: elections / 2, faults: half, ttlMs: 2_000 },
        {
          start: on(`${url}?dead-process-rule=false`),
          prefix: "rule-off",
          elections: elections / 2,
          faults: half,
          ttlMs: 2_000,
        },
      ]);
      console.log(text);
      expect(verdict, text).toBe("good");
    },
    long ? 900_000 : 120_000,
  );

  it("finds a leader that believes a signal instead of asking the clock", async () => {
    const url = pathToFileURL(store).href;
    const { verdict, text } = await race(join(ROOT, "artifacts/race/file-planted"), [
      {
        start: on(url, true),
        prefix: "planted",
        elections: 3,
        faults: { stop: 6, kill: 0 },
        ttlMs: 2_000,
        longStops: true,
      },
    ]);
    expect(text).toContain("OVERLAP");
    expect(verdict, text).toBe("violations");
  }, 120_000);
});
