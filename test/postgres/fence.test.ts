/** A fence in SQL: whatever the isolation level, a write of an older leader is never committed after one of a newer. */
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Election, isConclaveError, StaleLeaderError } from "../../src/index.js";
import { postgresBackend, PostgresFence } from "../../src/backends/postgres/index.js";
import { hasPostgres, PostgresServer } from "../support/postgres-server.js";

const LEVELS = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] as const;

describe.skipIf(!hasPostgres())("fences in SQL", { timeout: 60_000 }, () => {
  let server: PostgresServer;
  let pool: pg.Pool;
  beforeAll(async () => {
    server = await PostgresServer.start();
    pool = new pg.Pool({ connectionString: server.url(), max: 12 });
    await new PostgresFence({ name: "any" }).create(pool);
    await pool.query("CREATE TABLE journal (id bigserial PRIMARY KEY, level text, token bigint)");
  });
  afterAll(async () => {
    await pool?.end();
    await server?.stop();
  });

  /** One transaction of a leader: check, think, write. */
  async function act(
    fence: PostgresFence,
    level: string,
    token: bigint,
  ): Promise<"done" | "stale" | "beaten"> {
    const client = await pool.connect();
    try {
      await client.query(`BEGIN ISOLATION LEVEL ${level}`);
      await fence.check(token, client);
      await client.query("SELECT pg_sleep(random() * 0.004)");
      await client.query("INSERT INTO journal (level, token) VALUES ($1, $2)", [level, token.toString()]);
      await client.query("COMMIT");
      return "done";
    } catch (error) {
      await client.query("ROLLBACK");
      if (error instanceof StaleLeaderError) return "stale";
      if (["40001", "40P01"].includes((error as { code?: string }).code ?? "")) return "beaten";
      throw error;
    } finally {
      client.release();
    }
  }

  it.each(LEVELS)("%s: tokens in the journal never fall", async (level) => {
    const fence = new PostgresFence({ name: `resource of ${level}` });
    let newest = 1_000n;
    const count = { done: 0, stale: 0, beaten: 0 };
    await Promise.all(
      Array.from({ length: 8 }, async (_, who) => {
        for (let i = 0; i < 30; i++) {
          // Some act under the newest token, some under old ones that they still believe in.
          const token = who % 2 === 0 ? newest++ : newest - BigInt(Math.floor(Math.random() * 6));
          count[await act(fence, level, token)]++;
        }
      }),
    );
    const { rows } = await pool.query<{ token: string }>(
      "SELECT token FROM journal WHERE level = $1 ORDER BY id",
      [level],
    );
    const tokens = rows.map(({ token }) => BigInt(token));
    expect(tokens.length).toBe(count.done);
    expect(tokens).toEqual(tokens.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0)));
    expect(count.done).toBeGreaterThan(5);
    expect(count.stale + count.beaten).toBeGreaterThan(5);
  });

  it("tells who came after, and leaves the transaction to be rolled back", async () => {
    const fence = new PostgresFence({ name: "told" });
    await fence.check(7n, pool);
    await fence.check(7n, pool);
    await expect(fence.check(6n, pool)).rejects.toMatchObject({
      code: "stale-leader",
      token: 6n,
      highest: 7n,
    });
    await expect(fence.check(6 as never, pool)).rejects.toThrow(/bigint/);
  });

  it("a term's own check looks at the clock first", async () => {
    await using one = new Election({
      name: "bearer",
      backend: postgresBackend({ client: pool }),
      closeBackend: true,
    });
    const term = await one.campaign();
    const acts = new PostgresFence({ name: "bearer" }).bind(term);
    await acts.check(pool);
    await term.resign();
    await expect(acts.check(pool)).rejects.toMatchObject({ code: "not-leader" });
  });

  it("a table that is not there is said with what creates it", async () => {
    const error: unknown = await new PostgresFence({ name: "x", table: "nowhere" })
      .check(1n, pool)
      .catch((thrown: unknown) => thrown);
    expect(isConclaveError(error) && error.message).toMatch(/CREATE TABLE IF NOT EXISTS "nowhere"/);
  });
});
