/** Elections on a real API server, by a user that may do nothing but what the Role in deploy/ grants. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { Agent } from "node:https";
import type { RequestOptions } from "node:https";
import { afterEach, expect, it } from "vitest";
import { kubernetesBackend } from "../../../src/backends/kubernetes/index.js";
import { kubeconfigAccess } from "../../../src/backends/kubernetes/kubeconfig.js";
import type { BackendWithRecords } from "../../../src/seam/backend.js";
import { Election } from "../../../src/election/election.js";
import type { ElectionOptions } from "../../../src/api/options.js";
import { openElection } from "../../../src/open.js";
import { apiCall, getLease, LEASES, patchLease } from "../support/api.js";
import type { Server } from "../support/server.js";

const TIMING = { ttlMs: 3000, renewDeadlineMs: 2000, renewMs: 500, retryMs: 500 };
let sequence = 0;
const open: AsyncDisposable[] = [];

function fresh(): string {
  return `election-${process.pid}-${++sequence}`;
}

export function electionCases(server: () => Server): void {
  afterEach(async () => {
    for (const item of open.splice(0).toReversed()) await item[Symbol.asyncDispose]();
  });

  async function backend(): Promise<BackendWithRecords> {
    const it = await kubernetesBackend({ kubeconfig: server().elector });
    open.push(it);
    return it;
  }

  async function candidate(name: string, options: Partial<ElectionOptions> = {}): Promise<Election> {
    const election = new Election({ name, backend: await backend(), ...TIMING, ...options });
    open.push(election);
    return election;
  }

  it("writes what client-go writes, and its term beside it", async () => {
    const name = fresh();
    const a = await candidate(name, { id: "a", value: "http://a" });
    const term = await a.campaign();
    const lease = await getLease(server().admin, name);
    expect(lease.spec).toEqual({
      holderIdentity: a.candidate,
      leaseDurationSeconds: 3,
      acquireTime: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/),
      renewTime: expect.stringMatching(/\.\d{6}Z$/),
      leaseTransitions: 0,
    });
    await expect
      .poll(
        async () =>
          JSON.parse((await getLease(server().admin, name)).metadata.annotations["conclave/term"]).token,
        { timeout: 20_000 },
      )
      .toBe(term.token.toString());
    const renewed = await getLease(server().admin, name);
    expect(JSON.parse(renewed.metadata.annotations["conclave/term"])).toEqual({
      v: 1,
      holder: a.candidate,
      acquireTime: lease.spec.acquireTime,
      token: term.token.toString(),
      value: "http://a",
    });
    expect(renewed.spec.acquireTime).toBe(lease.spec.acquireTime);
    expect(renewed.spec.renewTime > lease.spec.renewTime).toBe(true);
    await term.resign();
    const released = await getLease(server().admin, name);
    expect(released.spec).toMatchObject({ holderIdentity: "", leaseDurationSeconds: 1, leaseTransitions: 0 });
    expect(released.spec.acquireTime).toBe(released.spec.renewTime);
    const again = await a.campaign();
    expect(again.token > term.token).toBe(true);
    expect((await getLease(server().admin, name)).spec.leaseTransitions).toBe(1);
  });

  it("hands over at once when the leader resigns", async () => {
    const name = fresh();
    // Polls are far apart: what comes sooner comes by the watch.
    const slow = { ttlMs: 60_000, renewDeadlineMs: 40_000, renewMs: 10_000, retryMs: 20_000 };
    const [a, b] = [await candidate(name, slow), await candidate(name, slow)];
    const first = await a.campaign();
    const waiting = b.campaign();
    await new Promise((resolve) => setTimeout(resolve, 1000));
    const at = performance.now();
    await first.resign();
    const second = await waiting;
    expect(performance.now() - at).toBeLessThan(10_000);
    expect(second.token > first.token).toBe(true);
    expect(first.held).toBe(false);
  });

  it("keeps labels, annotations and fields it does not know", async () => {
    const name = fresh();
    const a = await candidate(name);
    const term = await a.campaign();
    await patchLease(server().admin, name, {
      metadata: { labels: { team: "x" }, annotations: { note: "y" } },
    });
    await expect
      .poll(async () => (await getLease(server().admin, name)).metadata.annotations["conclave/term"], {
        timeout: 20_000,
      })
      .toContain(term.token.toString());
    await term.resign();
    await a.campaign();
    const lease = await getLease(server().admin, name);
    expect(lease.metadata.labels).toEqual({ team: "x" });
    expect(lease.metadata.annotations["note"]).toBe("y");
  });

  it("an update of a deleted Lease does not bring it back: uid and version are both judged", async () => {
    const name = fresh();
    const a = await candidate(name);
    await a.campaign();
    const old = await getLease(server().admin, name);
    await a.resign();
    await apiCall(server().admin, "DELETE", `${LEASES}/${name}`);
    expect((await apiCall(server().admin, "PUT", `${LEASES}/${name}`, old)).status).toBeGreaterThanOrEqual(
      404,
    );
    expect(await getLease(server().admin, name)).toBeNull();
  });

  it("a client certificate and a second namespace work as well", async ({ skip }) => {
    const { admin, cert } = server();
    if (cert === undefined) return skip("this cluster was handed in without a client certificate");
    const namespace = `second-${process.pid}`;
    await apiCall(admin, "POST", "/api/v1/namespaces", { metadata: { name: namespace } });
    const election = await openElection({
      name: fresh(),
      backend: `kubernetes:///${namespace}?kubeconfig=${encodeURIComponent(cert)}`,
    });
    open.push(election);
    expect(election.timing).toMatchObject({ ttlMs: 15_000, renewMs: 2000, retryMs: 2000 });
    const term = await election.campaign();
    expect(term.remainingMs).toBeGreaterThan(9000);
    expect(term.remainingMs).toBeLessThanOrEqual(10_000);
    await term.resign();
  });

  it("a namespace that is not there is said at once", async () => {
    const election = new Election({
      name: fresh(),
      backend: await kubernetesBackend({ kubeconfig: server().admin, namespace: "nowhere" }),
      ...TIMING,
      closeBackend: true,
    });
    open.push(election);
    await expect(election.campaign()).rejects.toMatchObject({
      code: "invalid",
      message: expect.stringContaining("create the namespace"),
    });
  });

  it("the example does on a Lease what it does on memory", () => {
    const example = new URL("../../../.build/examples/kubernetes/main.js", import.meta.url);
    const expected = readFileSync(
      new URL("../../../examples/kubernetes/expected.txt", import.meta.url),
      "utf8",
    );
    const env = { ...process.env, KUBECONFIG: server().elector, ELECTION: fresh() };
    const { stdout, stderr } = spawnSync(process.execPath, [example.pathname], {
      encoding: "utf8",
      env,
      timeout: 20_000,
    });
    expect(stderr).toBe("");
    expect(stdout).toBe(expected);
  });

  it("a KubeConfig object that was handed in is enough", async () => {
    const access = await kubeconfigAccess({ path: server().elector });
    const { authorization, ca } = await access.credentials();
    const kubeConfig = {
      getCurrentCluster: () => ({ server: access.server.href }),
      applyToHTTPSOptions: async (options: RequestOptions) =>
        void Object.assign(options, { ca, headers: { Authorization: authorization }, agent: new Agent() }),
    };
    const election = new Election({
      name: fresh(),
      backend: await kubernetesBackend({ kubeConfig }),
      ...TIMING,
      closeBackend: true,
    });
    open.push(election);
    await (await election.campaign()).resign();
  });

  it("durable texts are kept by compare-and-swap, beside the Leases", async () => {
    const { records } = await backend();
    const options = { signal: new AbortController().signal };
    const key = `any text / ${fresh()}`;
    expect(await records.read(key, options)).toBeNull();
    const first = await records.write(key, null, "one", options);
    expect(await records.write(key, null, "again", options)).toBeNull();
    const second = await records.write(key, first?.version ?? 0n, "one", options);
    expect(second && first && second.version > first.version, "also if the text is the same").toBe(true);
    expect(await records.write(key, first?.version ?? 0n, "late", options)).toBeNull();
    expect(await records.read(key, options)).toEqual(second);
  });

  it("the command line stands on a Lease and says who leads", () => {
    const name = fresh();
    const main = new URL("../../../dist/cli/main.js", import.meta.url).pathname;
    const cli = (...args: string[]): ReturnType<typeof spawnSync> =>
      spawnSync(process.execPath, [main, ...args, "--backend", "kubernetes:///default"], {
        encoding: "utf8",
        env: { ...process.env, KUBECONFIG: server().elector, POD_NAME: "web-7" },
        timeout: 20_000,
      });
    const led = cli("run", name, "--try", "--max-term", "1s", "--log", "json");
    expect(led.status, String(led.stderr)).toBe(0);
    expect(String(led.stdout)).toContain("web-7-");
    expect(cli("leader", name).status, "nobody leads any more").toBe(1);
  });
}
