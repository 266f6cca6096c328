/** The client against a server that answers what the test says. No Kubernetes. */
import { describe, expect, it } from "vitest";
import { RecordLeases } from "../../src/backends/kubernetes/record-leases.js";
import { systemClock } from "../../src/kit/clock.js";
import { answer, closeAfterEach, fake, lease, never } from "./support/fake.js";

closeAfterEach();

describe("answers", () => {
  it.each([
    [401, "forbidden", false],
    [403, "forbidden", false],
    [400, "invalid", false],
    [422, "invalid", false],
    [429, "unavailable", true],
    [500, "unavailable", true],
    [503, "unavailable", true],
    [302, "unavailable", true],
  ])("%i is %s (retriable: %s)", async (status, code, retriable) => {
    const { leases } = await fake((_, response) =>
      answer(response, status, JSON.stringify({ reason: "R", message: "because\u0000so" })),
    );
    await expect(leases.get("jobs", { signal: never })).rejects.toMatchObject({
      code,
      retriable,
      message: expect.stringContaining("because so"),
    });
  });

  it("404 on a read is nothing there; 404 on create is a namespace that is not", async () => {
    const { leases } = await fake((_, response) => answer(response, 404));
    expect(await leases.get("jobs", { signal: never })).toBeNull();
    await expect(leases.create("jobs", {}, { signal: never })).rejects.toMatchObject({
      code: "invalid",
      message: expect.stringContaining("create the namespace"),
    });
  });

  it("409 is not current, for create only if the object is there", async () => {
    const { leases } = await fake((_, response, body) =>
      answer(
        response,
        409,
        JSON.stringify({ reason: body.includes("there") ? "AlreadyExists" : "Conflict" }),
      ),
    );
    expect(await leases.update("jobs", {}, { signal: never })).toBeNull();
    expect(await leases.create("jobs", { there: 1 }, { signal: never })).toBeNull();
    await expect(leases.create("jobs", {}, { signal: never })).rejects.toMatchObject({ code: "unavailable" });
  });

  it.each(["not json", "[]", '{"metadata":{}}', ""])("200 with %j is an error, not a Lease", async (body) => {
    const { leases } = await fake((_, response) => answer(response, 200, body));
    await expect(leases.get("jobs", { signal: never })).rejects.toMatchObject({ name: "ConclaveError" });
  });

  it("an answer without end is cut off", async () => {
    const { leases } = await fake((_, response) => {
      response.writeHead(200);
      const more = (): void => void (response.destroyed || response.write("x".repeat(1 << 20), more));
      more();
    });
    await expect(leases.get("jobs", { signal: never })).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("larger than"),
    });
  });

  it("no message holds the token", async () => {
    const { client } = await fake((_, response) => answer(response, 403), {
      credentials: async () => ({ authorization: "Bearer TOPSECRET" }),
    });
    const error = await client
      .json({ method: "GET", path: "/", what: "asking" }, never)
      .catch((thrown: unknown) => thrown);
    expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toContain("TOPSECRET");
  });
});

describe("deadlines", () => {
  it("an abort destroys the socket, and the next request takes another", async () => {
    let hang = true;
    const { leases, sockets } = await fake((_, response) => void (hang || answer(response, 200, lease(1))));
    const controller = new AbortController();
    const asked = leases.get("jobs", { signal: controller.signal });
    await expect.poll(() => sockets.size, { timeout: 20_000 }).toBe(1);
    controller.abort(new Error("enough"));
    await expect(asked).rejects.toThrow("enough");
    await expect.poll(() => sockets.size, { timeout: 20_000 }).toBe(0);
    hang = false;
    expect((await leases.get("jobs", { signal: never }))?.version).toBe(1n);
  });

  it("also when the answer stops halfway", async () => {
    const { leases, sockets } = await fake((_, response) => {
      response.writeHead(200, { "content-length": "1000" });
      response.write("{");
    });
    const controller = new AbortController();
    const asked = leases.get("jobs", { signal: controller.signal });
    await expect.poll(() => sockets.size, { timeout: 20_000 }).toBe(1);
    setTimeout(() => controller.abort(), 50);
    await expect(asked).rejects.toMatchObject({ name: "ConclaveError" });
    await expect.poll(() => sockets.size, { timeout: 20_000 }).toBe(0);
  });

  it("close ends what is open and refuses what comes after", async () => {
    const { leases, client } = await fake(() => {});
    const asked = leases.get("jobs", { signal: never });
    setTimeout(() => client.close(), 20);
    await expect(asked).rejects.toMatchObject({ code: "state" });
    await expect(leases.get("jobs", { signal: never })).rejects.toMatchObject({ code: "state" });
  });
});

describe("credentials", () => {
  it("are read again after a 401, and used if they changed", async () => {
    let token = "old";
    let refreshed = 0;
    const { leases } = await fake(
      (request, response) =>
        request.headers.authorization === "Bearer new"
          ? answer(response, 200, lease(7))
          : answer(response, 401),
      {
        credentials: async () => ({ authorization: `Bearer ${token}` }),
        refresh: async () => {
          refreshed++;
          token = "new";
        },
      },
    );
    expect((await leases.get("jobs", { signal: never }))?.version).toBe(7n);
    expect(refreshed).toBe(1);
  });

  it("that did not change are not tried twice", async () => {
    const { leases, requests } = await fake((_, response) => answer(response, 401));
    await expect(leases.get("jobs", { signal: never })).rejects.toMatchObject({ code: "forbidden" });
    expect(requests.length).toBe(1);
  });
});

describe("Retry-After", () => {
  it("keeps every request back until it is over, and fails one whose time is up before", async () => {
    let refuse = true;
    const { leases, requests } = await fake((_, response) => {
      if (refuse) answer(response, 429, "{}", { "retry-after": "1" });
      else answer(response, 200, lease(1));
      refuse = false;
    });
    await expect(leases.get("jobs", { signal: never })).rejects.toMatchObject({ code: "unavailable" });
    const at = performance.now();
    const short = new AbortController();
    setTimeout(() => short.abort(), 100);
    await expect(leases.get("jobs", { signal: short.signal })).rejects.toThrow(/Retry-After/);
    expect(requests.length).toBe(1);
    expect((await leases.get("jobs", { signal: never }))?.version).toBe(1n);
    expect(performance.now() - at).toBeGreaterThan(850);
  });

  it("of a minute does not cost a leader its leadership: it is obeyed for a part of the lease only", async () => {
    let refuse = true;
    const { leases } = await fake((_, response) => {
      if (refuse) answer(response, 503, "{}", { "retry-after": "60" });
      else answer(response, 200, lease(1));
      refuse = false;
    });
    await expect(leases.get("jobs", { signal: never })).rejects.toMatchObject({ code: "unavailable" });
    const at = performance.now();
    expect((await leases.get("jobs", { signal: never }))?.version).toBe(1n);
    expect(performance.now() - at).toBeLessThan(6_000);
  });
});

describe("durable texts", () => {
  it("that are not ours are left alone", async () => {
    const { leases, requests } = await fake((_, response) => answer(response, 200, lease(3)));
    const store = new RecordLeases(systemClock, leases);
    await expect(store.read("k", { signal: never })).rejects.toMatchObject({ code: "conflict" });
    await expect(store.write("k", 3n, "x", { signal: never })).rejects.toMatchObject({ code: "conflict" });
    await expect(store.write("k", 3n, "x".repeat(300_000), { signal: never })).rejects.toMatchObject({
      code: "invalid",
    });
    expect(requests.every((line) => line.startsWith("GET "))).toBe(true);
  });
});
