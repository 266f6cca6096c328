import { expect, test } from "vitest";
import { Election, memoryBackend, openBackend, openElection, registerBackend } from "../../src/index.js";
import type { Backend } from "../../src/index.js";

test("two who name the same memory URL meet in one election", async () => {
  const options = { name: "open-by-url", backend: "memory:", ttlMs: 2000 };
  await using a = await openElection(options);
  await using b = await openElection(options);
  await using elsewhere = await openElection({ ...options, backend: "memory:elsewhere" });
  const term = await a.campaign();
  expect(await b.tryCampaign()).toBeNull();
  expect((await elsewhere.tryCampaign())?.held).toBe(true);
  await term.resign();
  expect((await b.campaign()).token).toBeGreaterThan(term.token);
});

test("a memory store outlives the election that opened it first", async () => {
  const options = { name: "open-and-close", backend: "memory:", ttlMs: 2000 };
  const a = await openElection(options);
  const first = await a.campaign();
  await a.close();
  await using b = await openElection(options);
  expect((await b.campaign()).token).toBeGreaterThan(first.token);
});

test("what is no backend and no work is refused in words, without showing what was given", async () => {
  const url = "etcd://root:secret@localhost";
  // @ts-expect-error -- plain JavaScript can pass anything
  expect(() => new Election({ name: "e", backend: url })).toThrow(/openElection/);
  // @ts-expect-error -- plain JavaScript can pass anything
  expect(() => new Election({ name: "e", backend: url })).not.toThrow(/secret/);
  // @ts-expect-error -- plain JavaScript can pass anything
  expect(() => new Election({ name: "e" })).toThrow(/backend must be/);
  await using election = new Election({ name: "e", backend: memoryBackend() });
  // @ts-expect-error -- plain JavaScript can pass anything
  await expect(election.run()).rejects.toMatchObject({ code: "invalid" });
});

test("a scheme of one's own opens one's own backend", async () => {
  const mine = memoryBackend();
  const opened: string[] = [];
  const opener = (url: URL): Backend => {
    opened.push(url.href);
    return mine;
  };
  const unregister = registerBackend("my-store", opener, { example: "my-store://host/table" });
  try {
    expect(await openBackend("my-store://db.example:7/elections")).toBe(mine);
    await using election = await openElection({ name: "e", backend: "my-store://db", ttlMs: 2000 });
    expect((await election.campaign()).held).toBe(true);
    expect(opened).toEqual(["my-store://db.example:7/elections", "my-store://db"]);
    // The same module loaded twice is no mistake; another store under this name would be.
    registerBackend("my-store", opener);
    expect(() => registerBackend("my-store", () => mine)).toThrow(/registered already/);
    expect(() => registerBackend("etcds", opener)).toThrow(/choose another/);
    expect(() => registerBackend("My:", opener)).toThrow(/no URL scheme/);
  } finally {
    unregister();
    registerBackend("my-store", opener)();
  }
  await expect(openBackend("my-store://db")).rejects.toMatchObject({ code: "invalid" });
});

test.each(["", "  "])("an empty backend (%j) is most likely a variable that is not set", async (backend) => {
  const said = /^backend is empty: is the variable set\?/;
  await expect(openElection({ name: "x", backend })).rejects.toThrow(said);
  await expect(openBackend(backend)).rejects.toThrow(said);
});
