/**
 * The statements. Each is one statement, and with that one transaction: nothing
 * is left open behind a pooler, no isolation level is needed, and an error of the
 * server means that nothing was done.
 *
 * `clock_timestamp()`, never `now()`: that one is the beginning of the transaction.
 */
import type { TableName } from "./table.js";
import { quoted } from "./table.js";

/** The row that keeps the timeline under which leaderships are granted (see timeline.ts). */
export const TIMELINE_KEY = "t:timeline";

const NOW_MS = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
/** Changes with every promotion and every restore from a backup. Fails on a standby. */
const TIMELINE = "left(pg_walfile_name(pg_current_wal_lsn()), 8)";
/** On the first one nothing was ever promoted, so nothing can have been lost. */
const FIRST_TIMELINE = "00000001";
/**
 * Without it a server or role with `synchronous_commit = off` acknowledges what a
 * crash forgets. For this transaction alone: the setting is back to what it was
 * after it.
 */
const SYNCHRONOUS = `c AS (SELECT set_config('synchronous_commit',
  CASE WHEN current_setting('synchronous_commit') IN ('off', 'local') THEN 'on'
       ELSE current_setting('synchronous_commit') END, true) AS raised)`;
/** A payload must be shorter than 8000 bytes: a longer record is left out, and whoever listens reads it. */
const notifies = (key: string, record: string, channel: string): string =>
  `CASE WHEN ${channel} <> '' THEN pg_notify(${channel}, ${key} || E'\\n' || w.version ||
    CASE WHEN octet_length(${key}) + octet_length(${record}) < 7900 THEN E'\\n' || ${record} ELSE '' END) END::text AS told`;
const until = (ttl: string): string => `clock_timestamp() + ${ttl}::float8 * interval '1 millisecond'`;
const next = (version: string): string => `greatest(${version} + 1, ${NOW_MS})`;

export interface Statements {
  /** $1 key. */
  readonly read: string;
  /** $1 key, $2 record, $3 ttl in ms or null, $4 channel or ''. */
  readonly insert: string;
  /** $1 key, $2 record, $3 ttl in ms or null, $4 channel or '', $5 version. */
  readonly update: string;
  /** As the two above; refused (`free` is false) while a timeline is young: $6 (insert: $5) for how many ms. */
  readonly grantInsert: string;
  readonly grantUpdate: string;
  /** $1 keys, $2 versions, $3 records, $4 ttls in ms. */
  readonly renewMany: string;
  /** $1 key, $2 version. A version ahead of the clock stays: the one that follows must be higher. */
  readonly remove: string;
  /** $1 first key, $2 key after the last, $3 how many. */
  readonly list: string;
  /** Grants begin to count anew from this moment if the timeline is another one. */
  readonly markTimeline: string;
  /** For a table that was just created: nothing can have been granted before it. */
  readonly firstTimeline: string;
}

export function statements(name: TableName): Statements {
  const table = quoted(name);
  const insert = (from: string): string => `w AS (INSERT INTO ${table} AS r (key, version, record, expires_at)
  SELECT $1::text, ${NOW_MS}, $2::text, ${until("$3")} FROM ${from}
  ON CONFLICT (key) DO NOTHING RETURNING r.version)`;
  const update = (
    from: string,
  ): string => `w AS (UPDATE ${table} AS r SET version = ${next("r.version")}, record = $2::text, expires_at = ${until("$3")}
  FROM ${from} WHERE r.key = $1::text AND r.version = $5::bigint RETURNING r.version)`;
  const told = notifies("$1::text", "$2::text", "$4::text");
  const grant = (write: string, ttl: string): string => `WITH ${SYNCHRONOUS},
t AS (SELECT ${TIMELINE} AS present),
k AS (SELECT record AS marked, expires_at AS since FROM ${table} WHERE key = '${TIMELINE_KEY}'),
f AS (SELECT t.present, k.marked, extract(epoch FROM clock_timestamp() - k.since)::float8 * 1000 AS age_ms,
    CASE WHEN k.marked IS NULL THEN t.present = '${FIRST_TIMELINE}'
         ELSE k.marked = t.present AND k.since + ${ttl}::float8 * interval '1 millisecond' <= clock_timestamp() END AS free
  FROM t LEFT JOIN k ON true),
o AS (SELECT 1 FROM c, f WHERE f.free),
${write}
SELECT w.version::text AS version, f.free, f.marked IS NOT DISTINCT FROM f.present AS marked, f.age_ms, ${told}
FROM f LEFT JOIN w ON true`;
  return {
    read: `SELECT version::text AS version, record, pg_is_in_recovery() AS standby,
  extract(epoch FROM expires_at - clock_timestamp())::float8 * 1000 AS left_ms
FROM ${table} WHERE key = $1::text`,
    insert: `WITH ${SYNCHRONOUS}, ${insert("c")} SELECT w.version::text AS version, ${told} FROM w`,
    update: `WITH ${SYNCHRONOUS}, ${update("c")} SELECT w.version::text AS version, ${told} FROM w`,
    grantInsert: grant(insert("o"), "$5"),
    grantUpdate: grant(update("o"), "$6"),
    // Locked in the order of their keys: two batches cannot wait for each other.
    renewMany: `WITH ${SYNCHRONOUS},
u AS (SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::float8[]) AS u(key, expected, record, ttl)),
l AS (SELECT r.key FROM ${table} AS r JOIN u ON r.key = u.key AND r.version = u.expected
  ORDER BY r.key FOR NO KEY UPDATE OF r),
w AS (UPDATE ${table} AS r SET version = ${next("r.version")}, record = u.record, expires_at = ${until("u.ttl")}
  FROM c, u, l WHERE r.key = u.key AND l.key = u.key AND r.version = u.expected RETURNING r.key, r.version)
SELECT w.key, w.version::text AS version FROM w`,
    remove: `DELETE FROM ${table} WHERE key = $1::text AND version = $2::bigint AND version < ${NOW_MS} RETURNING version::text AS version`,
    list: `SELECT key FROM ${table} WHERE key >= $1::text AND key < $2::text ORDER BY key LIMIT $3::int`,
    markTimeline: `INSERT INTO ${table} AS r (key, version, record, expires_at)
SELECT '${TIMELINE_KEY}', ${NOW_MS}, ${TIMELINE}, clock_timestamp()
ON CONFLICT (key) DO UPDATE SET version = ${next("r.version")}, record = excluded.record, expires_at = excluded.expires_at
WHERE r.record <> excluded.record`,
    firstTimeline: `INSERT INTO ${table} (key, version, record, expires_at)
SELECT '${TIMELINE_KEY}', ${NOW_MS}, ${TIMELINE}, to_timestamp(0) ON CONFLICT (key) DO NOTHING`,
  };
}
