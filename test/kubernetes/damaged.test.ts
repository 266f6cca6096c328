/** Somebody edits or removes the annotation in which a leader publishes its token. */
import { expect, it } from "vitest";
import { LeaseStore } from "../../src/backends/kubernetes/store.js";
import { systemClock } from "../../src/kit/clock.js";
import { answer, closeAfterEach, fake } from "./support/fake.js";

closeAfterEach();

const never = new AbortController().signal;
const acquireTime = "2025-01-01T00:00:00.000000Z";

function leaseAt(version: number, annotations: Record<string, string>): string {
  const renewTime = `2025-01-01T00:00:0${version % 10}.000000Z`;
  return JSON.stringify({
    metadata: { name: "jobs", namespace: "ns", uid: "u", resourceVersion: String(version), annotations },
    spec: { holderIdentity: "a-1", leaseDurationSeconds: 15, acquireTime, renewTime, leaseTransitions: 0 },
  });
}

function published(token: string): Record<string, string> {
  return { "conclave/term": JSON.stringify({ v: 1, holder: "a-1", acquireTime, token, value: "v" }) };
}

it.each([
  ["removed", {}],
  ["replaced by a token that was never granted", published("99999999999999999999")],
])("a token that was published stays known while its annotation is %s", async (_, damaged) => {
  let object = leaseAt(105, published("101"));
  const { leases } = await fake((_request, response) => answer(response, 200, object));
  const store = new LeaseStore(systemClock, leases);
  expect((await store.read("jobs", { signal: never }))?.record.token).toBe(101n);
  object = leaseAt(106, damaged);
  const entry = await store.read("jobs", { signal: never });
  expect([entry?.version, entry?.record.token]).toEqual([106n, 101n]);
  await store[Symbol.asyncDispose]();
});

it("an observer that meets the term only then is shown the version until the leader renews", async () => {
  let object = leaseAt(106, {});
  const { leases } = await fake((_request, response) => answer(response, 200, object));
  const store = new LeaseStore(systemClock, leases);
  expect((await store.read("jobs", { signal: never }))?.record.token).toBe(106n);
  object = leaseAt(107, published("101"));
  expect((await store.read("jobs", { signal: never }))?.record.token).toBe(101n);
  await store[Symbol.asyncDispose]();
});
