/** How many statements a step takes: each is a round trip and a commit of the server. */
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Election } from "../../src/index.js";
import { postgresBackend } from "../../src/backends/postgres/index.js";
import { hasPostgres, PostgresServer } from "../support/postgres-server.js";

describe.skipIf(!hasPostgres())("statements", { timeout: 60_000 }, () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await PostgresServer.start();
  });
  afterAll(() => server?.stop());

  async function counted(work: (election: (name: string) => Election, sent: string[]) => Promise<void>) {
    const pool = new pg.Pool({ connectionString: server.url(), max: 2 });
    pool.on("error", () => {});
    const sent: string[] = [];
    pool.on("connect", (client) => {
      const query = client.query.bind(client) as (...args: unknown[]) => unknown;
      client.query = ((...args: unknown[]) => {
        sent.push((args[0] as { text: string }).text);
        return query(...args);
      }) as typeof client.query;
    });
    await using backend = postgresBackend({ client: pool, listen: false });
    const elections: Election[] = [];
    try {
      await work((name) => {
        const election = new Election({ name, backend, ttlMs: 30_000 });
        elections.push(election);
        return election;
      }, sent);
    } finally {
      await Promise.all(elections.map((election) => election.close()));
      await pool.end();
    }
  }

  it("a leadership that this process gave back is taken again with one statement, and given back with one", async () => {
    await counted(async (open, sent) => {
      const election = open("again");
      await (await election.campaign()).resign();
      sent.length = 0;
      for (let i = 0; i < 10; i++) await (await election.campaign()).resign();
      expect(sent).toHaveLength(20);
      expect(sent.filter((text) => text.startsWith("SELECT version"))).toEqual([]);
    });
  });

  it("if another led in between, the version is refused, and the row is read", async () => {
    await counted(async (open, sent) => {
      const [one, other] = [open("between"), open("between")];
      await (await one.campaign()).resign();
      await server.sql("UPDATE conclave_record SET version = version + 1 WHERE key = 'l:between'");
      sent.length = 0;
      const term = await one.campaign();
      expect(sent).toHaveLength(3);
      expect(await other.tryCampaign()).toBeNull();
      await term.resign();
    });
  });
});
