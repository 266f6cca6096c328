/** The six promises, on a real API server, as the user that may do nothing but elections. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, test } from "vitest";
import { kubeconfigAccess } from "../../src/backends/kubernetes/kubeconfig.js";
import { kubernetesBackend } from "../../src/backends/kubernetes/index.js";
import { conformanceSuite, faultProxy } from "../../src/testing/conformance/index.js";
import type { FaultProxy } from "../../src/testing/conformance/index.js";
import { withServer } from "../kubernetes/support/with-server.js";
import { startCandidate } from "../support/children.js";
import { wireFaults } from "../support/wire-faults.js";

withServer("kubernetes", (server) => {
  const directory = mkdtempSync(join(tmpdir(), "conclave-conformance-"));
  const kubeconfig = join(directory, "by-proxy.kubeconfig");
  let proxy: FaultProxy | undefined;
  const faults = (): FaultProxy => {
    if (proxy === undefined) throw new Error("the proxy is not up");
    return proxy;
  };

  beforeAll(async () => {
    const { port } = (await kubeconfigAccess({ path: server().elector })).server;
    proxy = await faultProxy({ port: Number(port) });
    // TLS goes through it unseen: the certificate is for the address, whatever the port.
    writeFileSync(
      kubeconfig,
      readFileSync(server().elector, "utf8").replaceAll(`127.0.0.1:${port}`, `127.0.0.1:${proxy.port}`),
    );
  });
  afterAll(async () => {
    await proxy?.[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true, force: true });
  });

  conformanceSuite({
    runner: { describe, test, skip: test.skip },
    backend: () => kubernetesBackend({ kubeconfig }),
    faults: wireFaults(faults),
    skips: [
      { test: "a store that forgets", reason: "the user of elections may not delete Leases" },
      { test: "a store whose clock jumps", reason: "candidates time the lease by their own clocks" },
    ],
    child: ({ election, ttlMs }) => {
      const url = new URL("kubernetes:///default");
      url.searchParams.set("kubeconfig", server().elector);
      return startCandidate({ url: url.href, election, ttlMs });
    },
    rounds: process.env["CONCLAVE_LONG"] === "1" ? 20 : 5,
  });
});
