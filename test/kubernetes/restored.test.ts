/** The cluster's store is restored from a backup under running candidates. */
import { expect, it } from "vitest";
import { KubernetesBackend } from "../../src/backends/kubernetes/backend.js";
import { systemClock } from "../../src/kit/clock.js";
import { Election } from "../../src/election/election.js";
import { isConclaveError } from "../../src/kit/errors.js";
import { after, answer, closeAfterEach, fake } from "./support/fake.js";
import { untilStopped } from "./support/overlap.js";

closeAfterEach();

const TIMING = { ttlMs: 10_000, renewDeadlineMs: 8_000, renewMs: 300, retryMs: 200 };
const PATIENCE = { timeout: 20_000, interval: 20 };

interface Lease {
  readonly metadata: { readonly resourceVersion: string; readonly [field: string]: unknown };
  readonly spec: { readonly holderIdentity?: string; readonly [field: string]: unknown };
}

/** One Lease, versions and all, as the API server keeps it. No watch: reads ask the server. */
class Cluster {
  lease: Lease | undefined;
  revision = 100;

  write(body: string, expected: string | undefined): Lease | undefined {
    if (this.lease?.metadata.resourceVersion !== expected) return undefined;
    const { metadata, spec }: Lease = JSON.parse(body);
    this.lease = { metadata: { ...metadata, uid: "u", resourceVersion: String(++this.revision) }, spec };
    return this.lease;
  }

  restore(backup: { lease: Lease | undefined; revision: number }): void {
    this.lease = backup.lease;
    this.revision = backup.revision;
  }
}

async function served(cluster: Cluster): Promise<KubernetesBackend> {
  const { client } = await fake(({ method, url }, response, body) => {
    if (url?.includes("watch=1")) return answer(response, 403, '{"reason":"Forbidden"}');
    if (method === "GET")
      return cluster.lease === undefined
        ? answer(response, 404)
        : answer(response, 200, JSON.stringify(cluster.lease));
    const expected = method === "PUT" ? (JSON.parse(body) as Lease).metadata.resourceVersion : undefined;
    const written = method === "PATCH" ? undefined : cluster.write(body, expected);
    if (written !== undefined) return answer(response, 200, JSON.stringify(written));
    answer(response, 409, `{"reason":"${method === "POST" ? "AlreadyExists" : "Conflict"}"}`);
  });
  return new KubernetesBackend({ client, clock: systemClock, namespace: "ns", label: undefined });
}

it("the leader loses its term at its next renewal, and nobody who saw its token leads with a lower one", async () => {
  const cluster = new Cluster();
  const seen: string[] = [];
  const candidates = await Promise.all(
    ["a", "b"].map(async (id) => {
      const backend = await served(cluster);
      const election = new Election({ name: "jobs", id, backend, closeBackend: true, ...TIMING });
      const codes = new Set<string>();
      election.on("elected", ({ term }) => seen.push(`${id} leads ${term.token}`));
      election.on("ended", ({ end }) => seen.push(`${id} ${end.reason}`));
      election.on("error", ({ error }) => codes.add(isConclaveError(error) ? error.code : String(error)));
      after(() => election.close());
      return { election, codes };
    }),
  );
  const [a, b] = candidates;
  const term = await a!.election.campaign();
  await term.resign();
  const backup = { lease: cluster.lease, revision: cluster.revision };
  void a!.election.run(untilStopped);
  await expect.poll(() => a!.election.leading, PATIENCE).toBe(true);
  const high = a!.election.term!.token;
  void b!.election.run(untilStopped);
  await expect.poll(() => cluster.revision, PATIENCE).toBeGreaterThan(backup.revision + 8);
  cluster.restore(backup);
  await expect.poll(() => seen, PATIENCE).toContain("a revoked");
  await expect.poll(() => b!.codes, PATIENCE).toContain("token-regression");
  // Whatever else writes to the cluster raises its versions: in the end somebody leads, with a higher token.
  cluster.revision += 1_000;
  await expect.poll(() => candidates.some(({ election }) => election.leading), PATIENCE).toBe(true);
  const leader = candidates.find(({ election }) => election.leading)!;
  expect(leader.election.term!.token).toBeGreaterThan(high);
});
