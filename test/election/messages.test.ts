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
  await expect(scheduled).rejects.toThrow('schedule() has no option "timeout"; did you mean timeoutMs?');
});

test.each([
  ["retries", "did you mean retry?"],
  ["handler", "did you mean job?"],
  ["task", "did you mean job?"],
  ["timezone", "did you mean timeZone?"],
  ["tz", "did you mean timeZone?"],
  ["pattern", "did you mean cron?"],
  ["store", "did you mean backend?"],
  ["zzz", "known are allowUnfenced, "],
])("a schedule has no option %s: %s", async (wrong, hint) => {
  const options = { name: "x", backend, cron: "* * * * *", job: () => {}, [wrong]: 1 };
  await expect(schedule(options)).rejects.toThrow(`schedule() has no option "${wrong}"; ${hint}`);
});

test("the known options of a schedule are its own too; nothing far-fetched is suggested", async () => {
  // @ts-expect-error -- plain JavaScript can pass anything
  const scheduled = schedule({ name: "x", backend, cron: "* * * * *", job: () => {}, zzz: 1 });
  await expect(scheduled).rejects.toThrow(/ cron, .* job, .* misfire, .* overlap, .* retry, .* timeZone, /);
  // @ts-expect-error -- plain JavaScript can pass anything
  await expect(openElection({ name: "x", store: "file:" })).rejects.toThrow("did you mean backend?");
  // @ts-expect-error -- plain JavaScript can pass anything
  await expect(openElection({ name: "x", stor: "file:" })).rejects.toThrow("known are");
});

test("a signal in the place of options, and options that calls do not have", async () => {
  await using election = new Election({ name: "x", backend });
  await using lock = new Lock({ name: "x", backend });
  const signal = AbortSignal.abort();
  const work = (): void => {};
  const calls: readonly (readonly [string, (options: never) => Promise<unknown>])[] = [
    ["run()", (options) => election.run(work, options)],
    ["campaign()", (options) => election.campaign(options)],
    ["tryCampaign()", (options) => election.tryCampaign(options)],
    ["leader()", (options) => election.leader(options)],
    ["candidates()", (options) => election.candidates(options)],
    ["observe()", (options) => election.observe(options).next()],
    ["acquire()", (options) => lock.acquire(options)],
    ["tryAcquire()", (options) => lock.tryAcquire(options)],
    ["withLock()", (options) => lock.withLock(work, options)],
  ];
  for (const [what, call] of calls) {
    await expect(call(signal as never)).rejects.toThrow(
      `${what} was given a signal in the place of its options: pass { signal }`,
    );
    await expect(call({ foo: 1 } as never)).rejects.toThrow(`${what} has no option "foo"; known are `);
    await expect(call({ signals: signal } as never)).rejects.toThrow("did you mean signal?");
    await expect(call({ signal: "soon" } as never)).rejects.toThrow("signal must be an AbortSignal");
    await expect(call(5 as never)).rejects.toThrow(`${what} takes an object with options`);
  }
  // Nothing was begun by any of them.
  expect(await election.tryCampaign({ signal: new AbortController().signal })).not.toBeNull();
});

test.each([
  ["controls", "yes", 'controls is "yes"; it must be true or false'],
  ["history", 1, "history is 1; it must be true or false"],
  ["roster", "false", 'roster is "false"; it must be true or false'],
  ["eligible", null, "eligible is null; it must be true or false"],
  ["allowUnfenced", "no", 'allowUnfenced is "no"; it must be true or false'],
  ["logger", true, "logger is true; it must be an object with the methods debug, info, warn, error"],
  ["logger", {}, "logger is object; it must be an object with the methods debug, info, warn, error"],
])("%s: %j is refused", async (name, value, message) => {
  const options = { name: "x", backend, [name]: value };
  expect(() => new Election(options)).toThrow(message);
  expect(() => new Lock(options)).toThrow(message);
  await expect(openElection(options)).rejects.toThrow(message);
  await expect(schedule({ ...options, cron: "* * * * *", job: () => {} })).rejects.toThrow(message);
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
