/**
 * A worker that runs on every machine and works on one: with pg and nothing else.
 *
 * Needs PostgreSQL: DATABASE_URL, or PGHOST and the rest as pg reads them. Start
 * it twice, end the first one with Ctrl-C, and the second takes over within
 * milliseconds. What it writes carries its token: a worker that was stopped for a
 * minute and still believes that it leads is refused by the database itself.
 */
import { Election, StaleLeaderError } from "conclave";
import { postgresBackend, PostgresFence } from "conclave/postgres";
import pg from "pg";

const pool = new pg.Pool({ connectionString: process.env["DATABASE_URL"] });
const fence = new PostgresFence({ name: "reports" });
await fence.create(pool);
await pool.query(
  "CREATE TABLE IF NOT EXISTS reports (id bigserial PRIMARY KEY, token numeric, at timestamptz)",
);

const election = new Election({
  name: "reporter",
  backend: postgresBackend({ client: pool }),
  closeBackend: true,
});

const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());
process.once("SIGINT", () => stop.abort());

/** One report. Check and write are one transaction. */
async function report(token: bigint): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    await fence.check(token, client);
    await client.query("INSERT INTO reports (token, at) VALUES ($1, now())", [token.toString()]);
    await client.query("COMMIT");
  } catch (error) {
    await client.query("ROLLBACK");
    throw error;
  } finally {
    client.release();
  }
}

console.log("waiting to lead");
await election.run(
  async (term) => {
    console.log(`leading with token ${term.token}`);
    await report(term.token);
    console.log("wrote a report");
    const older = await report(term.token - 1n).catch((error: unknown) => error);
    console.log(`a worker of the past is refused: ${older instanceof StaleLeaderError}`);
    while (!term.signal.aborted) await new Promise((resolve) => setTimeout(resolve, 100));
  },
  { signal: stop.signal },
);
await election.close();
await pool.end();
console.log("resigned");
