/** Handing over to a named candidate, and standing back at a vacancy, among real voters. */
import { afterEach, describe, expect, it } from "vitest";
import { RaftCluster } from "../support/raft-cluster.js";
import { type Standing, type StandingOptions, Succession } from "../support/succession.js";
import { until } from "../support/until.js";

describe("peers: who leads next", () => {
  let cluster: RaftCluster;
  let succession: Succession;

  afterEach(async () => {
    await succession.close();
    await cluster.stop();
  });

  /** All wait for the first, which leads. */
  async function stand(
    ids: readonly string[],
    options: Record<string, StandingOptions> = {},
  ): Promise<Standing[]> {
    cluster = await RaftCluster.start();
    succession = new Succession("e", () => cluster.backend());
    const all: Standing[] = [];
    for (const id of ids) {
      all.push(await succession.join(id, { ttlMs: 5_000, ...options[id] }));
      if (all.length === 1) await all[0]!.leads();
    }
    return all;
  }

  it("the one that is named leads next, twenty times", async () => {
    const ids = ["a", "b", "c"];
    const all = await stand(ids);
    const expected = ["a"];
    for (let round = 1; round <= 20; round++) {
      const leader = all[ids.indexOf(expected.at(-1)!)]!;
      const heir = ids[(ids.indexOf(leader.id) + 1 + (round % 2)) % 3]!;
      await leader.resign({ candidate: round % 3 === 0 ? `${heir}-0a1b2c` : heir, forMs: 10_000 });
      leader.campaign();
      expected.push(heir);
      await until(() => succession.led.length === expected.length);
    }
    expect(succession.led).toEqual(expected);
  });

  it("a heir that does not come keeps nobody waiting for longer than it was given", async () => {
    const [leader] = await stand(["leader", "a", "b"]);
    const from = performance.now();
    await leader!.resign({ candidate: "dead", forMs: 700 });
    await until(() => succession.led.length === 2);
    const took = performance.now() - from;
    expect(took).toBeGreaterThan(600);
    expect(took).toBeLessThan(3_000);
  });

  it("who stands back lets the others go first, at every vacancy; alone it leads after its time", async () => {
    const low = { standBackMs: () => 500 };
    const [first, , high] = await stand(["low1", "low2", "high"], { low1: low, low2: low });
    await first!.resign();
    first!.campaign();
    for (let round = 1; round <= 5; round++) {
      await until(() => succession.led.length > round);
      await high!.leads();
      await high!.resign();
      high!.campaign();
    }
    await until(() => succession.led.length > 6);
    expect(succession.led).toEqual(["low1", ...Array.from({ length: 6 }, () => "high")]);
    await high!.resign();
    await until(() => succession.led.length === 8);
    expect(succession.led.at(-1)).toMatch(/^low/);
  });
});
