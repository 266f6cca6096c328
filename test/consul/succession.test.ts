/** What somebody else wrote where an heir is named, on a real Consul. Who leads next is the conformance suite's business. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { consulBackend } from "../../src/backends/consul/index.js";
import { ConsulServer, hasConsul } from "../support/consul-server.js";
import { Succession } from "../support/succession.js";

describe.skipIf(!hasConsul())("Consul: who leads next", () => {
  let server: ConsulServer;

  beforeAll(async () => {
    server = await ConsulServer.start();
  });
  afterAll(() => server.stop());

  it.each([
    "nonsense",
    '{"conclave":1,"heir":7,"forMs":60000}',
    '{"conclave":1,"heir":"x","forMs":-1}',
    '{"conclave":1,"heir":"x"',
  ])("%s keeps nobody waiting", async (text) => {
    const open = () => consulBackend({ address: server.address, env: {} });
    const succession = new Succession(`next/${text.length}`, open);
    try {
      const key = `/v1/kv/${succession.election}/.lock?flags=3304740253564472344`;
      await server.api("PUT", key, text);
      const from = performance.now();
      await (await succession.join("a")).leads();
      expect(performance.now() - from).toBeLessThan(5_000);
    } finally {
      await succession.close();
    }
  });
});
