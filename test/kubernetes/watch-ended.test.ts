/** A watch that has ended tells nothing more: reads ask the server until another is open. */
import type { ServerResponse } from "node:http";
import { expect, it } from "vitest";
import { LeaseStore } from "../../src/backends/kubernetes/store.js";
import { systemClock } from "../../src/kit/clock.js";
import { after, answer, closeAfterEach, fake, held, lease, never } from "./support/fake.js";

closeAfterEach();

/** A watch is believed for half of this without a word: long enough for any machine. */
const patient = { ...held, leaseDurationSeconds: 600 };
const GET = "GET /apis/coordination.k8s.io/v1/namespaces/ns/leases/jobs";

it("is not believed for what it said before", async () => {
  const watches: ServerResponse[] = [];
  let version = 5;
  const { leases, requests } = await fake((request, response) => {
    if (!request.url?.includes("watch=1")) return answer(response, 200, lease(version, patient));
    watches.push(response);
    // One watch; from then on there is no right to watch, and another try comes much later.
    if (watches.length > 1) return answer(response, 403);
    response.writeHead(200).flushHeaders();
  });
  const store = new LeaseStore(systemClock, leases);
  const stop = new AbortController();
  after(() => stop.abort());
  void store.watch("jobs", () => {}, { signal: stop.signal });
  const read = async (): Promise<{ version: bigint | undefined; asked: boolean }> => {
    const before = requests.filter((line) => line === GET).length;
    const found = (await store.read("jobs", { signal: never }))?.version;
    return { version: found, asked: requests.filter((line) => line === GET).length > before };
  };
  await expect.poll(read, { timeout: 20_000 }).toEqual({ version: 5n, asked: false });
  watches[0]?.end();
  await expect.poll(() => watches.length, { timeout: 20_000 }).toBe(2);
  version = 6;
  expect(await read()).toEqual({ version: 6n, asked: true });
  version = 7;
  expect(await read()).toEqual({ version: 7n, asked: true });
});
