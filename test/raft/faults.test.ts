/**
 * Three and five voters, each a process on a host with a network and a disk of its
 * own: killed, frozen, cut off in one direction and in both, disks wiped and full,
 * all of it at once. The judge of races looks for two leaders at one instant, two in
 * one term, and stale writes that were accepted. CONCLAVE_LONG=1: 1,000 faults.
 */
import { appendFileSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { readHistory } from "../../src/testing/race/history.js";
import { judgeDirectory } from "../../src/testing/race/index.js";
import { Resource } from "../../src/testing/race/resource.js";
import { ROOT } from "../shape/sources.js";
import { Fleet, TTL_MS } from "./fleet.js";
import { longestLeaderless } from "./leaderless.js";
import { KINDS, Mishaps } from "./mishaps.js";
import { lacking } from "./network.js";

const long = process.env["CONCLAVE_LONG"] === "1";
const FLEETS = long ? [3, 3, 3, 3, 5, 5, 5, 5] : [3, 5];
const FAULTS = long ? 125 : 12;
const LIMIT_MS = long ? 3_600_000 : 300_000;
/**
 * A lease that was granted just before, the time that a voter keeps quiet after its
 * start, links that are found dead and made anew: and a machine that does all of this at once.
 */
const LEADERLESS_MS = long ? 20_000 : 15_000;

const why = lacking();

describe.skipIf(why !== undefined)(`voters to whom everything happens${why ? ` (${why})` : ""}`, () => {
  const fleets: Fleet[] = [];
  const directory = mkdtempSync(join(tmpdir(), "conclave-raft-faults-"));
  // Also when the test has run out of time: nobody stays frozen, no namespace and no disk is left.
  afterAll(async () => {
    await Promise.all(fleets.map((fleet) => fleet.close()));
    rmSync(directory, { recursive: true, force: true });
  });

  it(
    `${FLEETS.length * FAULTS} faults: one leader, one for each term, no stale write`,
    async () => {
      const history = join(ROOT, "artifacts/race/raft-faults");
      rmSync(history, { recursive: true, force: true });
      mkdirSync(history, { recursive: true });
      const log = (event: object): void =>
        appendFileSync(join(history, "nemesis.jsonl"), `${JSON.stringify(event)}\n`);
      const resource = await Resource.listen(join(directory, "resource"), log);
      const began = performance.now();
      const broken: string[] = [];
      try {
        for (const [index, voters] of FLEETS.entries())
          fleets.push(
            new Fleet(`raft-${index}-of-${voters}`, voters, {
              history,
              directory,
              resource: join(directory, "resource"),
            }),
          );
        const runs = await Promise.allSettled(fleets.map((fleet) => new Mishaps(fleet, log).run(FAULTS)));
        for (const run of runs) if (run.status === "rejected") broken.push(String(run.reason));
      } finally {
        await Promise.all(fleets.map((fleet) => fleet.close()));
        await resource[Symbol.asyncDispose]();
        log({ ev: "end", t: `${process.hrtime.bigint()}` });
      }
      const faults = FLEETS.length * FAULTS;
      const { verdict, text } = judgeDirectory(history, {
        observations: 50 * faults,
        changes: faults / 4,
        faults: {},
      });
      const lines = readHistory(history);
      const done = lines.filter(({ ev }) => ev === "fault");
      const counts = KINDS.map((kind) => `${done.filter((line) => line.kind === kind).length} x ${kind}`);
      const worst = fleets.map((fleet) => longestLeaderless(fleet, lines)).sort((a, b) => b.ms - a.ms)[0]!;
      const seconds = Math.round((performance.now() - began) / 1_000);
      const report = `${text}\n${counts.join(", ")} in ${seconds} s; without a leader while a majority was up: at most ${worst.ms} ms (ttl ${TTL_MS} ms)`;
      console.log(report);
      expect(verdict, report).toBe("good");
      expect(broken, report).toEqual([]);
      expect(done).toHaveLength(faults);
      expect(worst.ms, report).toBeLessThan(LEADERLESS_MS);
    },
    LIMIT_MS,
  );
});
