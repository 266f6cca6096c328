/** A write was refused: what the watch has delivered is not believed until the server itself has answered. */
import { expect, it } from "vitest";
import { LeaseStore } from "../../src/backends/kubernetes/store.js";
import { systemClock } from "../../src/kit/clock.js";
import { after, answer, closeAfterEach, fake, held, lease, never } from "./support/fake.js";

closeAfterEach();

/** A watch is believed for half of this without a word: long enough for any machine. */
const patient = { ...held, leaseDurationSeconds: 600 };

it("a read that fails does not put the doubt to rest", async () => {
  let get: () => string | number = () => lease(5, patient);
  const { leases, requests } = await fake((request, response) => {
    if (request.url?.includes("watch=1")) {
      response.writeHead(200).flushHeaders();
      return;
    }
    if (request.method === "PUT") return answer(response, 409, '{"reason":"Conflict"}');
    const found = get();
    if (typeof found === "number") answer(response, found);
    else answer(response, 200, found);
  });
  const store = new LeaseStore(systemClock, leases);
  const stop = new AbortController();
  after(() => stop.abort());
  void store.watch("jobs", () => {}, { signal: stop.signal });
  const asked = (): number => requests.filter((line) => line === GET).length;
  const read = (): ReturnType<LeaseStore["read"]> => store.read("jobs", { signal: never });

  /** Whether a read is answered from what the watch has delivered. */
  const believed = async (): Promise<boolean> => {
    const before = asked();
    await read();
    return asked() === before;
  };
  // Its answer may be on the way for a moment; then it talks, and is believed.
  await expect.poll(believed, { timeout: 20_000 }).toBe(true);
  expect((await read())?.version).toBe(5n);

  const record = { holder: "a-1", ttlMs: 15_000, value: "", since: 1_700_000_000_000, token: null };
  expect(await store.write("jobs", 5n, record, { signal: never })).toBeNull();
  get = () => 500;
  await expect(read()).rejects.toMatchObject({ code: "unavailable" });
  get = () => lease(7, { ...patient, holderIdentity: "b-1" });
  expect(await read()).toMatchObject({ version: 7n, current: true, record: { holder: "b-1" } });
  // The server has answered: from here on the watch is believed again.
  expect(await believed()).toBe(true);
  expect((await read())?.version).toBe(7n);
});

const GET = "GET /apis/coordination.k8s.io/v1/namespaces/ns/leases/jobs";
