/** The wrapper around postgres.js, as docs/backends/postgres.md shows it. */
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Election } from "../../src/index.js";
import { type PostgresClient, postgresBackend } from "../../src/backends/postgres/index.js";
import { hasPostgres, PostgresServer } from "../support/postgres-server.js";
import { until } from "../support/until.js";

const TTL_MS = 60_000;

describe.skipIf(!hasPostgres())("postgres.js", { timeout: 60_000 }, () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await PostgresServer.start();
  });
  afterAll(() => server?.stop());

  const wrap = (sql: postgres.Sql): PostgresClient => ({
    query: async (text, values) => ({ rows: await sql.unsafe(text, values as never[]) }),
    listen: (channel, notified) => sql.listen(channel, notified),
  });

  it("elects, wakes by notification, keeps values and records, and its client stays open", async () => {
    const clients = [0, 1].map(() => postgres(server.url(), { max: 2, onnotice: () => {} }));
    const backends = clients.map((sql) => postgresBackend({ client: wrap(sql) }));
    // Far longer than the test: only a notification hands over in time.
    const [one, two] = backends.map(
      (backend) => new Election({ name: "postgresjs", backend, ttlMs: TTL_MS, retryMs: TTL_MS / 2 }),
    ) as [Election, Election];
    try {
      const term = await one.campaign();
      await term.proclaim("here");
      const next = two.campaign();
      const told = (): Promise<boolean> =>
        server
          .sql("SELECT 1 FROM pg_stat_activity WHERE query ILIKE 'listen %conclave%'")
          .then((rows) => rows.length > 0);
      await until(told, 20_000);
      expect((await one.leader())?.value).toBe("here");
      const began = performance.now();
      await term.resign();
      const after = await next;
      expect(performance.now() - began).toBeLessThan(TTL_MS / 3);
      expect(after.token).toBeGreaterThan(term.token);
      await after.resign();
      const { signal } = new AbortController();
      const written = await backends[0]!.records.write("note", null, "text", { signal });
      expect(await backends[1]!.records.read("note", { signal })).toMatchObject({
        version: written!.version,
        record: "text",
      });
    } finally {
      await Promise.all([one, two].map((election) => election.close()));
      await Promise.all(backends.map((backend) => backend[Symbol.asyncDispose]()));
    }
    expect((await clients[0]!.unsafe("SELECT 1 AS n"))[0]).toEqual({ n: 1 });
    await Promise.all(clients.map((sql) => sql.end()));
  });
});
