/**
 * Voters as real processes, each of which also campaigns: leaders really stopped
 * and really killed. Lost disks are in cluster.test.ts and not here: with them a
 * race once ended without a leader, perhaps because the next fault struck before
 * the voter without a disk had rejoined. CONCLAVE_LONG=1: 1,000 faults.
 */
import type { ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { race } from "../../src/testing/race/index.js";
import type { RaceRequest } from "../../src/testing/race/index.js";
import { ROOT } from "../shape/sources.js";
import { startCandidate } from "../support/children.js";
import { freePorts } from "../support/free-ports.js";

const long = process.env["CONCLAVE_LONG"] === "1";
const faults = long ? { stop: 500, kill: 500 } : { stop: 5, kill: 5 };
/** As many as the nemesis starts for one election. */
const VOTERS = 3;

/** One cluster for each election: its voters are the candidates. */
class Clusters {
  readonly #root = mkdtempSync(join(tmpdir(), "conclave-raft-race-"));
  readonly #ports: number[];
  readonly #free = new Map<string, { list: string; slots: string[]; dir: string }>();

  constructor(ports: number[]) {
    this.#ports = ports;
  }

  start(request: RaceRequest): ChildProcess {
    const cluster = this.#of(request.election);
    const self = cluster.slots.shift()!;
    const dir = join(cluster.dir, self);
    const url = `raft://${cluster.list}?self=${self}&dir=${dir}&insecure=true`;
    const child = startCandidate({ ...request, url });
    child.once("close", () => cluster.slots.push(self));
    return child;
  }

  clear(): void {
    rmSync(this.#root, { recursive: true, force: true });
  }

  #of(election: string): { list: string; slots: string[]; dir: string } {
    const known = this.#free.get(election);
    if (known !== undefined) return known;
    const slots = Array.from({ length: VOTERS }, (_, index) => `n${index + 1}`);
    const list = slots.map((name) => `${name}@127.0.0.1:${this.#ports.pop()}`).join(",");
    const made = { list, slots, dir: join(this.#root, String(this.#free.size)) };
    this.#free.set(election, made);
    return made;
  }
}

describe("voters that are stopped and killed", () => {
  let clusters: Clusters;
  const elections = long ? 4 : 1;
  beforeAll(async () => {
    clusters = new Clusters(await freePorts(VOTERS * elections));
  });
  afterAll(() => clusters.clear());

  it(
    `${faults.stop} stops and ${faults.kill} kills of the leader: never two leaders, no stale write`,
    async () => {
      const start = (request: RaceRequest): ChildProcess => clusters.start(request);
      const { verdict, text } = await race(join(ROOT, "artifacts/race/raft"), [
        { start, prefix: "raft", elections, faults, ttlMs: 1_000 },
      ]);
      console.log(text);
      expect(verdict, text).toBe("good");
    },
    long ? 3_600_000 : 180_000,
  );
});
