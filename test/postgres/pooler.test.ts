/** Behind PgBouncer in transaction mode, and with TLS and a password. */
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Election } from "../../src/index.js";
import { postgresBackend } from "../../src/backends/postgres/index.js";
import type { Pgbouncer } from "../support/pgbouncer.js";
import { hasPgbouncer, startPgbouncer } from "../support/pgbouncer.js";
import { hasPostgres, PostgresServer } from "../support/postgres-server.js";
import { until } from "../support/until.js";

describe.skipIf(!hasPostgres() || !hasPgbouncer())(
  "behind PgBouncer in transaction mode",
  { timeout: 60_000 },
  () => {
    let server: PostgresServer;
    let pooler: Pgbouncer;
    beforeAll(async () => {
      server = await PostgresServer.start();
      pooler = await startPgbouncer(server);
    });
    afterAll(async () => {
      await pooler?.[Symbol.asyncDispose]();
      await server?.stop();
    });

    const url = (more = ""): string => `postgres://postgres@127.0.0.1:${pooler.port}/postgres${more}`;

    it("a pool whose named statements are not known to the next connection goes on without names", async () => {
      const pool = new pg.Pool({ connectionString: url(), max: 1 });
      const sent: (string | undefined)[] = [];
      pool.on("connect", (client) => {
        const query = client.query.bind(client) as (...args: unknown[]) => unknown;
        client.query = ((...args: unknown[]) => {
          sent.push((args[0] as { name?: string }).name);
          return query(...args);
        }) as typeof client.query;
      });
      const other = new pg.Client({ connectionString: url() });
      const backend = postgresBackend({ client: pool, listen: false });
      const election = new Election({ name: "named", backend });
      try {
        for (let i = 0; i < 2; i++) await (await election.campaign()).resign();
        expect(sent.slice(-2).map((name) => name?.slice(0, 9))).toEqual(["conclave_", "conclave_"]);
        // Another client's transaction keeps the server's connection that knows the statements: the next one is to another.
        await other.connect();
        await other.query("BEGIN");
        await other.query("SELECT 1");
        for (let i = 0; i < 3; i++) await (await election.campaign()).resign();
        expect(sent.slice(-4)).toEqual(Array.from({ length: 4 }));
      } finally {
        await other.end();
        await election.close();
        await backend[Symbol.asyncDispose]();
        await pool.end();
      }
    });

    it("elections work, silence is noticed once, followers poll", async () => {
      const warnings: string[] = [];
      const open = (): Election =>
        new Election({
          name: "pooled",
          ttlMs: 3_000,
          backend: postgresBackend({ url: url(), warn: (message) => warnings.push(message) }),
          closeBackend: true,
        });
      await using one = open();
      await using two = open();
      const term = await one.campaign();
      const next = two.campaign();
      // Other statements of other clients would move the connection that listens; one alone may happen to hear itself.
      const busy = Array.from({ length: 3 }, () => postgresBackend({ url: url(), listen: false }));
      const reading = setInterval(
        () =>
          busy.forEach(
            (one) => void one.records.read("x", { signal: new AbortController().signal }).catch(() => {}),
          ),
        5,
      );
      try {
        await until(() => warnings.length > 0 || term.signal.aborted, 20_000);
      } finally {
        clearInterval(reading);
        await Promise.all(busy.map((one) => one[Symbol.asyncDispose]()));
      }
      expect(warnings).toEqual([expect.stringMatching(/notifications do not arrive/)]);
      expect(term.held).toBe(true);
      await term.resign();
      expect((await next).token).toBeGreaterThan(term.token);
      expect(warnings).toHaveLength(1);
    });

    it("a direct connection for listening is heard", async () => {
      const warnings: string[] = [];
      const listen = `?listen=127.0.0.1:${server.port}`;
      const open = (): Election =>
        new Election({
          name: "direct",
          ttlMs: 30_000,
          backend: postgresBackend({ url: url(listen), warn: (message) => warnings.push(message) }),
          closeBackend: true,
        });
      await using one = open();
      await using two = open();
      const term = await one.campaign();
      const next = two.campaign();
      await until(
        async () =>
          (await server.sql("SELECT 1 FROM pg_stat_activity WHERE query LIKE 'LISTEN conclave%'")).length > 0,
      );
      const began = performance.now();
      await term.resign();
      await next;
      expect(performance.now() - began).toBeLessThan(1_500);
      expect(warnings).toEqual([]);
    });
  },
);

describe.skipIf(!hasPostgres())("with TLS and a password", () => {
  it("elections work when the certificate is known, and not otherwise", async () => {
    const server = await PostgresServer.start({ tls: true, password: "correct-horse-battery" });
    try {
      const more = `?sslmode=verify-full&sslrootcert=${encodeURIComponent(server.ca!)}`;
      await using one = new Election({
        name: "tls",
        backend: postgresBackend({ url: server.url(more) }),
        closeBackend: true,
      });
      const term = await one.campaign();
      expect(term.held).toBe(true);
      const [row] = await server.sql<{ ssl: boolean }>(
        "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'conclave' LIMIT 1",
      );
      expect(row?.ssl).toBe(true);
      await term.resign();
      await using other = new Election({
        name: "tls",
        backend: postgresBackend({ url: server.url("?sslmode=verify-full") }),
        closeBackend: true,
      });
      await expect(other.tryCampaign()).rejects.toThrow(/cannot be reached \(.*certificate.*\)/);
    } finally {
      await server.stop();
    }
  });
});
