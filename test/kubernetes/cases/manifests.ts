/** The manifests of deploy/ as the API server judges them, and the Role as a candidate lives under it. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, expect, it, vi } from "vitest";
import { parseAllDocuments } from "yaml";
import { kubernetesBackend } from "../../../src/backends/kubernetes/index.js";
import { everyTimetable, schedule } from "../../../src/cron/index.js";
import { Election } from "../../../src/election/election.js";
import { deferred } from "../../../src/kit/wait.js";
import { apiCall } from "../support/api.js";
import type { Server } from "../support/server.js";

const DEPLOY = fileURLToPath(new URL("../../../deploy", import.meta.url));
const files = ["kubernetes", "kubernetes/prometheus-operator", "minikube"].flatMap((folder) =>
  readdirSync(join(DEPLOY, folder))
    .filter((name) => name.endsWith(".yaml"))
    .map((name) => join(folder, name)),
);

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly [field: string]: unknown;
}

const RESOURCES: Record<string, string> = {
  Deployment: "deployments",
  PodDisruptionBudget: "poddisruptionbudgets",
  Role: "roles",
  RoleBinding: "rolebindings",
  Service: "services",
  ServiceAccount: "serviceaccounts",
  ServiceMonitor: "servicemonitors",
  StatefulSet: "statefulsets",
};

function manifests(file: string): Manifest[] {
  return parseAllDocuments(readFileSync(join(DEPLOY, file), "utf8")).map(
    (document) => document.toJS() as Manifest,
  );
}

/** As an older server names it: budgets have the same fields there. */
async function known(admin: string, manifest: Manifest): Promise<Manifest> {
  if (manifest.kind !== "PodDisruptionBudget") return manifest;
  const { status } = await apiCall(admin, "GET", "/apis/policy/v1");
  return status === 200 ? manifest : { ...manifest, apiVersion: "policy/v1beta1" };
}

/** What the Prometheus operator adds to a cluster, as far as our manifest goes; fields that it does not know are refused. */
async function withServiceMonitors(admin: string): Promise<void> {
  const text = { type: "string" };
  const object = (properties: object, ...required: string[]): object => ({
    type: "object",
    properties,
    ...(required.length > 0 && { required }),
  });
  const endpoint = object({
    port: text,
    path: text,
    interval: text,
    authorization: object({ type: text, credentials: object({ name: text, key: text }, "key") }),
  });
  const selector = object({ matchLabels: { type: "object", additionalProperties: text } });
  const spec = object({ selector, endpoints: { type: "array", items: endpoint } }, "endpoints", "selector");
  const version = { name: "v1", served: true, storage: true, schema: { openAPIV3Schema: object({ spec }) } };
  const definition = {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "servicemonitors.monitoring.coreos.com" },
    spec: {
      group: "monitoring.coreos.com",
      scope: "Namespaced",
      names: { plural: "servicemonitors", singular: "servicemonitor", kind: "ServiceMonitor" },
      versions: [version],
    },
  };
  const all = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  const { status, body } = await apiCall(admin, "POST", all, definition);
  expect([201, 409], JSON.stringify(body)).toContain(status);
  await vi.waitFor(
    async () => {
      const path = "/apis/monitoring.coreos.com/v1/namespaces/default/servicemonitors";
      expect((await apiCall(admin, "GET", path)).status).toBe(200);
    },
    { timeout: 30_000, interval: 200 },
  );
}

function collection({ apiVersion, kind }: Manifest, namespace: string): string {
  const resource = RESOURCES[kind];
  if (resource === undefined) throw new Error(`no path known for ${kind}`);
  return `${apiVersion.includes("/") ? "/apis" : "/api"}/${apiVersion}/namespaces/${namespace}/${resource}`;
}

/** A namespace in which the limited user has the rights of a file's Role, and no others. */
async function bind(admin: string, namespace: string, file: string): Promise<void> {
  await apiCall(admin, "POST", "/api/v1/namespaces", { metadata: { name: namespace } });
  for (const manifest of manifests(file)) {
    if (!["Role", "RoleBinding", "ServiceAccount"].includes(manifest.kind)) continue;
    const subjects = [{ kind: "User", apiGroup: "rbac.authorization.k8s.io", name: "elector" }];
    const bound = manifest.kind === "RoleBinding" ? { ...manifest, subjects } : manifest;
    expect((await apiCall(admin, "POST", collection(manifest, namespace), bound)).status).toBe(201);
  }
}

export function manifestCases(server: () => Server): void {
  beforeAll(() => withServiceMonitors(server().admin));

  it.each(files)("deploy/%s passes a server-side dry run", async (file) => {
    const found = manifests(file);
    expect(found.length).toBeGreaterThan(0);
    for (const manifest of await Promise.all(found.map((one) => known(server().admin, one)))) {
      const path = `${collection(manifest, "default")}/${manifest.metadata.name}?dryRun=All&fieldManager=test&force=true`;
      const applied = await apiCall(server().admin, "PATCH", path, manifest, "application/apply-patch+yaml");
      expect(applied.status, JSON.stringify(applied.body)).toBeLessThan(300);
      // Created as well: apply does not run every check that create does.
      const created = await apiCall(
        server().admin,
        "POST",
        `${collection(manifest, "default")}?dryRun=All`,
        manifest,
      );
      expect(created.status, JSON.stringify(created.body)).toBeLessThan(300);
    }
  });

  it("a manifest with a mistake does not pass", async () => {
    const [deployment] = manifests("kubernetes/deployment.yaml").filter(({ kind }) => kind === "Deployment");
    const spec = { ...(deployment?.["spec"] as object), replicas: "three" };
    const answer = await apiCall(
      server().admin,
      "POST",
      "/apis/apps/v1/namespaces/default/deployments?dryRun=All",
      { ...deployment, spec },
    );
    expect(answer.status).toBeGreaterThanOrEqual(400);
  });

  it("the Role of cron.yaml is enough for a schedule", async ({ skip }) => {
    const { admin, elector } = server();
    if (elector === admin) return skip("this cluster was handed in without a second, limited user");
    const namespace = `cron-role-${process.pid}`;
    await bind(admin, namespace, "kubernetes/cron.yaml");
    const ran = deferred<unknown>();
    await using backend = await kubernetesBackend({ kubeconfig: elector, namespace });
    await using replica = await schedule({
      name: "nightly-bill",
      cron: everyTimetable(200),
      backend,
      job: ({ scheduledAt }) => ran.resolve(scheduledAt),
    });
    replica.on("error", ({ error }) => ran.resolve(error));
    expect(await ran.promise).toBeInstanceOf(Date);
    expect((await replica.history())?.runs.length).toBeGreaterThan(0);
  });

  it("the Role is enough for an election, its watch included, and allows no other Lease", async ({
    skip,
  }) => {
    if (server().elector === server().admin)
      return skip("this cluster was handed in without a second, limited user");
    const namespace = `role-${process.pid}`;
    const { admin, elector } = server();
    await bind(admin, namespace, "kubernetes/rbac.yaml");
    // Polls are far apart: what comes sooner comes by the watch.
    const timing = { ttlMs: 60_000, retryMs: 20_000 };
    const open = async (name: string): Promise<Election> =>
      new Election({
        name,
        backend: await kubernetesBackend({ kubeconfig: elector, namespace }),
        ...timing,
        closeBackend: true,
      });
    await using a = await open("leader-election");
    await using b = await open("leader-election");
    const first = await a.campaign();
    const waiting = b.campaign();
    await new Promise((resolve) => setTimeout(resolve, 1000));
    const at = performance.now();
    await first.resign();
    await waiting;
    expect(performance.now() - at, "by the watch, not by the next look").toBeLessThan(10_000);
    await using other = await open("another");
    await expect(other.campaign()).rejects.toMatchObject({
      code: "forbidden",
      message: expect.stringMatching(/Role with get, create/),
    });
  });
}
