/** A campaign whose put arrived, whose answer did not, and whose removal did not either. */
import { afterEach, describe, expect, it } from "vitest";
import { etcdBackend } from "../../src/backends/etcd/index.js";
import { parseEndpoint } from "../../src/backends/etcd/client/endpoint.js";
import { faultProxy } from "../../src/testing/conformance/index.js";
import { Election } from "../../src/election/election.js";
import { Bench } from "../support/contest.js";
import { EtcdServer, hasEtcd } from "../support/etcd-server.js";
import { until } from "../support/until.js";

/** Renewed every 20 s: whoever waits for that does not win in time. */
const TTL = 60_000;
const SOON_MS = 10_000;

describe.skipIf(!hasEtcd())("etcd: a key that its candidate could not remove", () => {
  const bench = new Bench();
  afterEach(() => bench.cleanUp());

  it("is removed soon after etcd can be reached again", { timeout: 60_000 }, async () => {
    const server = await EtcdServer.start();
    bench.onEnd(() => server.stop());
    const proxy = await faultProxy({ port: parseEndpoint(server.endpoints[0]!).port });
    bench.onEnd(async () => proxy[Symbol.asyncDispose]());
    const backend = etcdBackend({ endpoints: `${proxy.host}:${proxy.port}`, env: {} });
    bench.onEnd(async () => backend[Symbol.asyncDispose]());
    const open = (name: string): Election => {
      const election = new Election({ name, backend, ttlMs: TTL });
      bench.onEnd(() => election.close());
      return election;
    };
    // Keeps the lease in use, so that it is not revoked as a whole.
    await open("other").campaign();

    const keys = async (): Promise<string> => server.etcdctl("get", "--prefix", "--keys-only", "alone/");
    await proxy.deafen();
    const stop = new AbortController();
    const unheard = open("alone").campaign({ signal: stop.signal });
    unheard.catch(() => {});
    await until(async () => (await keys()).trim() !== "");
    await proxy.cut();
    stop.abort();
    await expect(unheard).rejects.toThrow("aborted");
    expect((await keys()).trim()).not.toBe("");
    await proxy.heal();

    const soon = AbortSignal.timeout(SOON_MS);
    expect((await open("alone").campaign({ signal: soon })).held).toBe(true);
  });
});
