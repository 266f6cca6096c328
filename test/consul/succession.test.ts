/** Handing over to a named candidate, and standing back at a vacancy, on a real Consul. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { consulBackend } from "../../src/backends/consul/index.js";
import { CountingSend } from "../support/consul-elections.js";
import { ConsulServer, hasConsul } from "../support/consul-server.js";
import { type Standing, type StandingOptions, Succession } from "../support/succession.js";
import { until } from "../support/until.js";

describe.skipIf(!hasConsul())("Consul: who leads next", () => {
  let server: ConsulServer;
  let succession: Succession;
  let names = 0;

  beforeAll(async () => {
    server = await ConsulServer.start();
  });
  afterEach(() => succession.close());
  afterAll(() => server.stop());

  /** All wait for the first, which leads. */
  async function stand(
    ids: readonly string[],
    options: Record<string, StandingOptions> = {},
  ): Promise<Standing[]> {
    const sends: CountingSend[] = [];
    succession = new Succession(`next/${++names}`, () => {
      const send = new CountingSend(server.address);
      sends.push(send);
      return consulBackend({ address: server.address, env: {}, send: send.send });
    });
    const all: Standing[] = [];
    for (const [i, id] of ids.entries()) {
      all.push(await succession.join(id, options[id]));
      if (i === 0) await all[0]!.leads();
      else await until(() => sends[i]!.long > 0);
    }
    return all;
  }

  it("the one that is named leads next, ten times", async () => {
    const ids = ["a", "b", "c"];
    const all = await stand(ids);
    const expected = ["a"];
    for (let round = 1; round <= 10; round++) {
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

  it("what is not a heir's text does not keep anybody waiting", async () => {
    for (const text of [
      "nonsense",
      '{"conclave":1,"heir":7,"forMs":60000}',
      '{"conclave":1,"heir":"x","forMs":-1}',
      '{"conclave":1,"heir":"x"',
    ]) {
      succession = new Succession(`next/${++names}`, () =>
        consulBackend({ address: server.address, env: {} }),
      );
      const key = `/v1/kv/${succession.election}/.lock?flags=3304740253564472344`;
      await server.api("PUT", key, text);
      const from = performance.now();
      await (await succession.join("a")).leads();
      expect(performance.now() - from).toBeLessThan(5_000);
      await succession.close();
    }
  });

  it("who stands back lets the others go first, at every vacancy; alone it leads after its time", async () => {
    const low = { standBackMs: () => 1_000 };
    const [first, , high] = await stand(["low1", "low2", "high"], { low1: low, low2: low });
    await first!.resign();
    first!.campaign();
    for (let round = 1; round <= 3; round++) {
      await high!.leads();
      await high!.resign();
      high!.campaign();
      await until(() => succession.led.length > round + 1);
    }
    expect(succession.led).toEqual(["low1", ...Array.from({ length: 4 }, () => "high")]);
    await high!.resign();
    await until(() => succession.led.length === 6);
    expect(succession.led.at(-1)).toMatch(/^low/);
  });
});
