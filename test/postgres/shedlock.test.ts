/** In ShedLock's table, beside a Java program that uses it: its own statements are sent here as it sends them. */
import { afterAll, beforeAll, describe, expect, it, test } from "vitest";
import { Election } from "../../src/index.js";
import { openPostgres } from "../../src/backends/postgres/index.js";
import { conformanceSuite, faultProxy } from "../../src/testing/conformance/index.js";
import type { FaultProxy } from "../../src/testing/conformance/index.js";
import { startCandidate } from "../support/children.js";
import { hasPostgres, PostgresServer } from "../support/postgres-server.js";
import { wireFaults } from "../support/wire-faults.js";
import { without } from "../support/wishes.js";

/** Tests that publish a value and read it back. */
const VALUES = [
  "observers see who leads: the present leader first, with candidate, token and value",
  "observers see who leads: every change, in order, and the vacancy at the end",
  "observers see who leads: the newest value, however slowly they read",
  "observers see who leads: values as they were proclaimed",
  "elections keep the law: campaign, hold, proclaim, resign",
];

describe.skipIf(!hasPostgres())("layout shedlock", { timeout: 60_000 }, () => {
  let server: PostgresServer;
  let proxy: FaultProxy;
  beforeAll(async () => {
    server = await PostgresServer.start();
    proxy = await faultProxy({ port: server.port });
  });
  afterAll(async () => {
    await proxy?.[Symbol.asyncDispose]();
    await server?.stop();
  });

  /** What ShedLock's JdbcTemplateLockProvider does with usingDbTime(); the host's name is its holder. */
  const java = {
    lock: async (name: string, seconds: number): Promise<boolean> => {
      const now = "timezone('utc', CURRENT_TIMESTAMP)";
      const rows = await server.sql(
        `INSERT INTO shedlock(name, lock_until, locked_at, locked_by) VALUES ($1, ${now} + make_interval(secs => $2), ${now}, 'java-host')
         ON CONFLICT (name) DO UPDATE SET lock_until = excluded.lock_until, locked_at = excluded.locked_at, locked_by = excluded.locked_by
         WHERE shedlock.name = $1 AND shedlock.lock_until <= ${now} RETURNING 1`,
        [name, seconds],
      );
      return rows.length === 1;
    },
    unlock: async (name: string): Promise<void> => {
      await server.sql(
        "UPDATE shedlock SET lock_until = timezone('utc', CURRENT_TIMESTAMP) WHERE name = $1 AND locked_by = 'java-host'",
        [name],
      );
    },
  };
  const election = (name: string, ttlMs = 3_000): Election =>
    new Election({ name, ttlMs, backend: openPostgres(server.url("?layout=shedlock")), closeBackend: true });

  it("excludes Java, and Java excludes it", async () => {
    await using one = election("job");
    const term = await one.campaign();
    expect(await java.lock("job", 5)).toBe(false);
    expect((await one.leader())?.candidate).toBe(one.candidate);
    await term.resign();
    expect(await java.lock("job", 30)).toBe(true);
    expect(await one.tryCampaign()).toBeNull();
    expect((await one.leader())?.candidate).toBe("java-host");
    const next = one.campaign();
    await java.unlock("job");
    expect((await next).token).toBeGreaterThan(term.token);
  });

  it("is renewed, and a crashed Java program is replaced when its lock has run out", async () => {
    await using one = election("crashed", 1_500);
    await one.tryCampaign().then((term) => term?.resign()); // creates the table
    expect(await java.lock("crashed", 1)).toBe(true);
    const term = await one.campaign();
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    expect(term.held).toBe(true);
    expect(await java.lock("crashed", 1)).toBe(false);
  });

  it("a name that does not fit is refused", async () => {
    await using one = election("x".repeat(65));
    await expect(one.tryCampaign()).rejects.toThrow(/at most 64 characters/);
  });

  if (process.env["CONCLAVE_LONG"] === "1")
    conformanceSuite({
      runner: { describe, test, skip: test.skip },
      backend: async () =>
        openPostgres(`postgres://postgres@${proxy.host}:${proxy.port}/postgres?layout=shedlock`),
      faults: {
        ...wireFaults(() => proxy),
        forget: async () => void (await server.sql("DELETE FROM shedlock")),
      },
      skips: [
        { test: "records by compare-and-swap", reason: "ShedLock's table keeps none" },
        {
          test: "calls end when aborted: every call while the store does not answer",
          reason: "it asks for records too",
        },
        {
          test: "a store that forgets: nothing is written on a forgotten version",
          reason: "it is about records",
        },
        ...without(["heir", "stand-back"], "ShedLock's table has no place for who leads next"),
        ...VALUES.map((name) => ({ test: name, reason: "ShedLock's table has no place for a value" })),
        { test: "a store whose clock jumps", reason: "ShedLock goes by the database's clock alone" },
      ],
      child: ({ election: name, ttlMs }) =>
        startCandidate({ url: server.url("?layout=shedlock"), election: name, ttlMs }),
    });
});
