/** What a term leaves behind in this process, and what a watch that is faster than an answer must not do to it. */
import type { ServerResponse } from "node:http";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { KubernetesBackend } from "../../src/backends/kubernetes/backend.js";
import { LeaseStore } from "../../src/backends/kubernetes/store.js";
import { systemClock } from "../../src/kit/clock.js";
import { after, answer, closeAfterEach, fake, lease, never } from "./support/fake.js";

closeAfterEach();

function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  const gc: unknown = runInNewContext("gc");
  if (typeof gc === "function") gc();
}

/** An API server with one Lease. */
async function server(): ReturnType<typeof fake> {
  let version = 1;
  let spec: object | undefined;
  let annotations: object | undefined;
  const body = (): string =>
    JSON.stringify({
      metadata: { name: "jobs", uid: "u", resourceVersion: String(version), annotations },
      spec,
    });
  return fake((request, response, sent) => {
    if (request.url?.includes("watch=1")) {
      response.writeHead(200).flushHeaders();
      return;
    }
    if (request.method === "GET") return answer(response, spec === undefined ? 404 : 200, body());
    const parsed = JSON.parse(sent) as { spec: object; metadata: { annotations?: object } };
    version++;
    ({ spec } = parsed);
    ({ annotations } = parsed.metadata);
    answer(response, 200, body());
  });
}

describe("leadership", () => {
  it("that was left is forgotten: candidates come and go for as long as the backend lives", async () => {
    const { client } = await server();
    const backend = new KubernetesBackend({ client, clock: systemClock, namespace: "ns", label: undefined });
    after(() => backend[Symbol.asyncDispose]());
    // Leadership holds the signal, the hold holds leadership: watch the signal.
    const revoked = async (candidate: string): Promise<WeakRef<object>> => {
      const candidacy = {
        election: "jobs",
        candidate,
        value: "",
        ttlMs: 15_000,
        retryMs: 500,
        attemptMs: 2_000,
      };
      const hold = await backend.campaign(candidacy, { wait: false, signal: never });
      await hold?.release({ signal: never });
      return new WeakRef(hold!.revoked!);
    };
    const refs = [await revoked("a-1"), await revoked("b-2"), await revoked("c-3")];
    await expect
      .poll(
        () => {
          collectGarbage();
          return refs.filter((ref) => ref.deref() !== undefined).length;
        },
        { timeout: 10_000 },
      )
      .toBe(0);
  });

  it("is still ours if the watch brings an edit of the Lease before the answer to our own write", async () => {
    let watch: ServerResponse | undefined;
    const { leases } = await fake((request, response, sent) => {
      if (request.url?.includes("watch=1")) {
        response.writeHead(200).flushHeaders();
        watch = response;
      } else if (request.method === "GET") {
        answer(response, 200, lease(9, { holderIdentity: "" }));
      } else {
        const { spec, metadata } = JSON.parse(sent) as { spec: object; metadata: object };
        const at = (version: number): object => ({
          metadata: { ...metadata, resourceVersion: String(version), labels: { edited: String(version) } },
          spec,
        });
        // Written as 10; somebody edits a label at once, and the watch is the faster way.
        watch?.write(`${JSON.stringify({ type: "MODIFIED", object: at(11) })}\n`);
        setTimeout(() => answer(response, 200, JSON.stringify(at(10))), 200);
      }
    });
    const store = new LeaseStore(systemClock, leases);
    const stop = new AbortController();
    after(() => stop.abort());
    void store.watch("jobs", () => {}, { signal: stop.signal });
    await expect.poll(() => watch, { timeout: 10_000 }).toBeDefined();
    const record = { holder: "a-1", ttlMs: 15_000, value: "", since: 1_700_000_000_000, token: null };
    const entry = await store.write("jobs", 9n, record, { signal: never });
    expect(entry?.version).toBe(10n);
    expect(await store.read("jobs", { signal: never })).toMatchObject({
      version: 11n,
      record: { holder: "a-1", token: 10n },
    });
  });
});
