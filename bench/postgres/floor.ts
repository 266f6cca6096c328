/**
 * What the server and its client allow at most: the statements of a grant and of a release, and nothing around them.
 * Without quarantine, renewals, deadlines, or a look at who leads; so nobody should use this as a lock.
 */
import pg from "pg";
import type { PostgresServer } from "../../test/support/postgres-server.js";

const TABLE = "floor_record";
const CHANNEL = "floor";
const RECORD = JSON.stringify({
  v: 1,
  holder: "a-candidate-0123456789abcdef",
  ttl: 10_000,
  value: "x".repeat(80),
});
const WRITE = `WITH w AS (UPDATE ${TABLE} SET version = version + 1, record = $2, expires_at = clock_timestamp() + $3::float8 * interval '1 millisecond'
  WHERE key = $1 AND version = $4 RETURNING version)
SELECT version::text, CASE WHEN $5 <> '' THEN pg_notify($5, $1 || E'\\n' || version) END::text FROM w`;
/** The same for many keys; one message for all. */
const WRITE_MANY = `WITH u AS (SELECT * FROM unnest($1::text[], $2::bigint[]) AS u(key, expected)),
l AS (SELECT r.key FROM ${TABLE} r JOIN u ON r.key = u.key AND r.version = u.expected ORDER BY r.key FOR NO KEY UPDATE OF r),
w AS (UPDATE ${TABLE} r SET version = r.version + 1, record = $3, expires_at = clock_timestamp() + $4::float8 * interval '1 millisecond'
  FROM u, l WHERE r.key = u.key AND l.key = u.key RETURNING r.key, r.version)
SELECT key, version::text FROM w`;

export async function prepareFloor(server: PostgresServer, lanes: number): Promise<void> {
  const client = await server.client();
  await client.query(
    `CREATE TABLE IF NOT EXISTS ${TABLE} (key text COLLATE "C" PRIMARY KEY, version bigint NOT NULL, record text NOT NULL, expires_at timestamptz) WITH (fillfactor = 50)`,
  );
  await client.query(
    `INSERT INTO ${TABLE} SELECT 'k' || i, 1, '', NULL FROM generate_series(0, $1::int - 1) i ON CONFLICT (key) DO UPDATE SET version = 1`,
    [lanes],
  );
  await client.end();
}

/** One grant and one release by statements that the server knows; each a commit, the release with a message. */
export function floorCycle(pool: pg.Pool): (lane: number) => Promise<void> {
  const versions = new Map<number, number>();
  const write = async (lane: number, ttlMs: number, channel: string): Promise<void> => {
    const version = versions.get(lane) ?? 1;
    const values = [`k${lane}`, RECORD, ttlMs, version, channel];
    const { rows } = await pool.query<{ version: string }>({ name: "floor", text: WRITE, values });
    versions.set(lane, Number(rows[0]!.version));
  };
  return async (lane) => {
    await write(lane, 10_000, "");
    await write(lane, 0, CHANNEL);
  };
}

/** All lanes at once: a grant of all in one statement, then a release of all in one. Returns how many cycles it made. */
export async function floorTogether(server: PostgresServer, lanes: number, ms: number): Promise<number> {
  const client = await server.client();
  const keys = Array.from({ length: lanes }, (_, i) => `k${i}`);
  const end = performance.now() + ms;
  let [version, done] = [1, 0];
  for (; performance.now() < end; done += lanes)
    for (const ttlMs of [10_000, 0]) {
      const values = [keys, keys.map(() => version), RECORD, ttlMs];
      await client.query({ name: "floor-many", text: WRITE_MANY, values });
      version++;
    }
  await client.end();
  return done;
}

/** The message of a release wakes the other, which writes: nothing else happens in between. */
export async function floorHandovers(server: PostgresServer, count: number): Promise<number[]> {
  const [writer, waiter, listener] = await Promise.all([server.client(), server.client(), server.client()]);
  await listener.query(`LISTEN ${CHANNEL}`);
  const samples: number[] = [];
  for (let i = 0; i < count; i++) {
    await new Promise((resolve) => setTimeout(resolve, 15));
    const [from, to] = i % 2 === 0 ? [writer, waiter] : [waiter, writer];
    const heard = new Promise<number>((resolve) =>
      listener.once("notification", ({ payload }) => resolve(Number(payload!.split("\n")[1]))),
    );
    const began = performance.now();
    const values = ["k0", RECORD, 0, i * 2 + 1, CHANNEL];
    const released = from.query({ name: "floor", text: WRITE, values });
    const version = await heard;
    await to.query({ name: "floor", text: WRITE, values: ["k0", RECORD, 10_000, version, ""] });
    samples.push(performance.now() - began);
    await released;
  }
  await Promise.all([writer, waiter, listener].map((client) => client.end()));
  return samples;
}
