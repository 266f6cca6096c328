/** What plain JavaScript gets wrong, and what it is told. */
import { expect, test } from "vitest";
import { Election, Lock, memoryBackend, openBackend, openElection, openLock } from "../../src/index.js";
import { schedule } from "../../src/cron/index.js";

const backend = memoryBackend();

test("options that are missing, misspelt or unknown", async () => {
  // @ts-expect-error -- plain JavaScript can pass anything
  await expect(openElection()).rejects.toThrow(
    /openElection\(\) takes an object with options, at least \{ name/,
  );
  // @ts-expect-error -- plain JavaScript can pass anything
  expect(() => new Election({ name: "x", backend, ttl: 5_000 })).toThrow(
    'an election has no option "ttl"; did you mean ttlMs?',
  );
  // @ts-expect-error -- plain JavaScript can pass anything
  expect(() => new Lock({ name: "x", backend, loger: console })).toThrow(/did you mean logger\?/);
  // @ts-expect-error -- plain JavaScript can pass anything
  await expect(openLock({ name: "x", backend, qqqqqqqq: 1 })).rejects.toThrow(/known are allowUnfenced/);
  // @ts-expect-error -- plain JavaScript can pass anything
  const scheduled = schedule({ name: "x", backend, cron: "* * * * *", job: () => {}, timeout: 5 });
  await expect(scheduled).rejects.toThrow(/has no option "timeout"/);
});

test("events that do not exist", async () => {
  await using election = new Election({ name: "x", backend });
  // @ts-expect-error -- plain JavaScript can pass anything
  expect(() => election.on("electd", () => {})).toThrow('has no event "electd"; did you mean "elected"?');
});

test("a URL, or a promise of a backend, where a backend is needed", async () => {
  // @ts-expect-error -- plain JavaScript can pass anything
  expect(() => new Lock({ name: "x", backend: "etcd://a:2379" })).toThrow(
    /openLock\(\{ name, backend: url \}\)/,
  );
  // @ts-expect-error -- plain JavaScript can pass anything
  expect(() => new Election({ name: "x", backend: openBackend("memory:") })).toThrow(/await openBackend/);
});

test("the address of etcd as a web address", async () => {
  await expect(openBackend("http://localhost:2379")).rejects.toThrow(/etcd:\/\/host:2379/);
});

test("a lock on a URL closes what it opened", async () => {
  await using lock = await openLock({ name: "x", backend: "memory:lock" });
  expect(await lock.withLock(({ token }) => token > 0n)).toBe(true);
});
