/** A bad value is refused before anything is done; it never costs leadership. */
import { expect, test } from "vitest";
import { ConclaveError, Election, memoryBackend } from "../../src/index.js";
import { readClocks, systemClock } from "../../src/kit/clock.js";
import { RecordHold } from "../../src/record/hold.js";
import type { LeaseRecord } from "../../src/record/lease.js";
import type { Entry, RecordStore } from "../../src/index.js";

test("what no store keeps is refused, and the leader stays readable", async () => {
  await using election = new Election({ name: "e", backend: memoryBackend(), ttlMs: 3000, value: "first" });
  const term = await election.campaign();
  await expect(term.proclaim("x".repeat(70_000))).rejects.toMatchObject({ code: "invalid" });
  await expect(term.proclaim("\ud800")).rejects.toMatchObject({ code: "invalid" });
  // @ts-expect-error -- plain JavaScript can pass anything
  await expect(term.proclaim(undefined)).rejects.toMatchObject({ code: "invalid" });
  expect(await election.leader()).toMatchObject({ candidate: election.candidate, value: "first" });
  expect(term.value).toBe("first");
  expect(term.held).toBe(true);
});

test("a value that the store refuses for good is not carried into renewals", async () => {
  let entry: Entry<LeaseRecord> = {
    version: 1n,
    record: { holder: "a", ttlMs: 3000, value: "good", since: 1, token: null },
  };
  const store: RecordStore<LeaseRecord> = {
    read: async () => entry,
    write: async (_key, expected, record) => {
      if (record.value === "bad") throw new ConclaveError("invalid", "not here");
      return entry.version === expected ? (entry = { version: entry.version + 1n, record }) : null;
    },
    [Symbol.asyncDispose]: async () => {},
  };
  const record = { ...entry.record, holder: "a", ttlMs: 3000 };
  const hold = new RecordHold(systemClock, store, {
    key: "e",
    record,
    version: 1n,
    asked: readClocks(systemClock),
  });
  const { signal } = new AbortController();
  await expect(hold.proclaim("bad", { signal })).rejects.toMatchObject({ code: "invalid" });
  expect(await hold.renew({ signal })).toMatchObject({ asked: { now: expect.any(Number) } });
  expect(entry.record.value).toBe("good");
});
