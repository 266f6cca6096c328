/** The manifests of deploy/ as the API server judges them, and the Role as a candidate lives under it. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { kubernetesBackend } from "../../../src/backends/kubernetes/index.js";
import { Election } from "../../../src/election/election.js";
import { apiCall } from "../support/api.js";
import type { Server } from "../support/server.js";

const DEPLOY = fileURLToPath(new URL("../../../deploy", import.meta.url));
const files = ["kubernetes", "minikube"].flatMap((folder) =>
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
  Role: "roles",
  RoleBinding: "rolebindings",
  Service: "services",
  ServiceAccount: "serviceaccounts",
  StatefulSet: "statefulsets",
};

function manifests(file: string): Manifest[] {
  return parseAllDocuments(readFileSync(join(DEPLOY, file), "utf8")).map(
    (document) => document.toJS() as Manifest,
  );
}

function collection({ apiVersion, kind }: Manifest, namespace: string): string {
  const resource = RESOURCES[kind];
  if (resource === undefined) throw new Error(`no path known for ${kind}`);
  return `${apiVersion.includes("/") ? "/apis" : "/api"}/${apiVersion}/namespaces/${namespace}/${resource}`;
}

export function manifestCases(server: () => Server): void {
  it.each(files)("deploy/%s passes a server-side dry run", async (file) => {
    const found = manifests(file);
    expect(found.length).toBeGreaterThan(0);
    for (const manifest of found) {
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

  it("the Role is enough for an election, its watch included, and allows no other Lease", async ({
    skip,
  }) => {
    if (server().elector === server().admin)
      return skip("this cluster was handed in without a second, limited user");
    const namespace = `role-${process.pid}`;
    const { admin, elector } = server();
    await apiCall(admin, "POST", "/api/v1/namespaces", { metadata: { name: namespace } });
    for (const manifest of manifests("kubernetes/rbac.yaml")) {
      const subjects = [{ kind: "User", apiGroup: "rbac.authorization.k8s.io", name: "elector" }];
      const bound = manifest.kind === "RoleBinding" ? { ...manifest, subjects } : manifest;
      expect((await apiCall(admin, "POST", collection(manifest, namespace), bound)).status).toBe(201);
    }
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
