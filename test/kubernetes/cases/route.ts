/** The label that leads a Service to the leader. */
import { afterEach, expect, it } from "vitest";
import { kubernetesBackend } from "../../../src/backends/kubernetes/index.js";
import { Election } from "../../../src/election/election.js";
import { apiCall } from "../support/api.js";
import type { Server } from "../support/server.js";

const TIMING = { ttlMs: 3000, renewDeadlineMs: 2000, renewMs: 500, retryMs: 500 };
const PODS = "/api/v1/namespaces/default/pods";
const open: AsyncDisposable[] = [];
let sequence = 0;

export function routeCases(server: () => Server): void {
  afterEach(async () => {
    for (const item of open.splice(0).toReversed()) await item[Symbol.asyncDispose]();
  });

  async function pod(labels: Record<string, string> = {}): Promise<string> {
    const name = `route-${process.pid}-${++sequence}`;
    const spec = { containers: [{ name: "c", image: "x" }], automountServiceAccountToken: false };
    const made = await apiCall(server().admin, "POST", PODS, {
      metadata: { name, labels: { app: "x", ...labels } },
      spec,
    });
    expect(made.status, JSON.stringify(made.body)).toBe(201);
    return name;
  }

  async function labels(name: string): Promise<Record<string, string>> {
    return (await apiCall(server().admin, "GET", `${PODS}/${name}`)).body.metadata.labels;
  }

  async function candidate(name: string, podName: string, kubeconfig = server().admin): Promise<Election> {
    const backend = await kubernetesBackend({ kubeconfig, route: { pod: podName } });
    const election = new Election({ name, backend, ...TIMING, closeBackend: true });
    open.push(election);
    return election;
  }

  it("the leading pod carries it, and it is off before leadership is free", async () => {
    const [first, second] = [await pod(), await pod()];
    const [a, b] = [await candidate("routed", first), await candidate("routed", second)];
    const term = await a.campaign();
    await expect
      .poll(() => labels(first), { timeout: 20_000 })
      .toEqual({ app: "x", "conclave/leader": "routed" });
    const waiting = b.campaign().then(async (won) => ({ won, then: await labels(first) }));
    await new Promise((resolve) => setTimeout(resolve, 700));
    expect(await labels(second)).toEqual({ app: "x" });
    await term.resign();
    expect((await waiting).then).toEqual({ app: "x" });
    await expect
      .poll(() => labels(second), { timeout: 20_000 })
      .toEqual({ app: "x", "conclave/leader": "routed" });
  });

  it("one that a crash left on is off before this process stands", async () => {
    const left = await pod({ "conclave/leader": "crashed" });
    const other = await pod({ "conclave/leader": "something-else" });
    const holder = await candidate("crashed", await pod());
    await holder.campaign();
    const [a, b] = [await candidate("crashed", left), await candidate("crashed", other)];
    expect(await a.tryCampaign()).toBeNull();
    expect(await b.tryCampaign()).toBeNull();
    expect(await labels(left)).toEqual({ app: "x" });
    expect(await labels(other), "of another election: not ours to take").toEqual({
      app: "x",
      "conclave/leader": "something-else",
    });
  });

  it("missing rights and a wrong name are said before anyone leads", async ({ skip }) => {
    if (server().elector === server().admin)
      return skip("this cluster was handed in without a second, limited user");
    const refused = await candidate("refused", await pod(), server().elector);
    await expect(refused.campaign()).rejects.toMatchObject({ code: "forbidden" });
    const absent = await candidate("absent", "no-such-pod");
    await expect(absent.campaign()).rejects.toThrow(/no such pod; set POD_NAME/);
  });
}
