/** ShedLock's steps, each one statement. Its clock is the database's, in UTC without a zone. */
import type { TableName } from "./table.js";
import { quoted } from "./table.js";

const NOW = "timezone('utc', clock_timestamp())";
const after = (ttl: string): string => `${NOW} + ${ttl}::float8 * interval '1 millisecond'`;
/** Microseconds of `locked_at`: an extension does not change it, and a next lock has a later one. */
const TOKEN = "(extract(epoch FROM s.locked_at) * 1000000)::bigint";

export interface ShedlockStatements {
  /** $1 name, $2 holder, $3 ttl in ms. A row comes back if it was locked. */
  readonly acquire: string;
  /** $1 name, $2 holder, $3 token, $4 ttl in ms. */
  readonly extend: string;
  /** $1 name, $2 holder, $3 token. */
  readonly release: string;
  /** $1 name, $2 holder: whatever its token. */
  readonly retract: string;
  /** $1 name. */
  readonly look: string;
  /** $1 how many. */
  readonly list: string;
}

export function shedlockStatements(name: TableName): ShedlockStatements {
  const table = quoted(name);
  return {
    // A row of the candidate's own is the trace of a write whose answer was lost.
    acquire: `INSERT INTO ${table} AS s (name, lock_until, locked_at, locked_by)
VALUES ($1::text, ${after("$3")}, ${NOW}, $2::text)
ON CONFLICT (name) DO UPDATE SET lock_until = excluded.lock_until, locked_by = excluded.locked_by,
  locked_at = greatest(excluded.locked_at, s.locked_at + interval '1 microsecond')
WHERE s.lock_until <= excluded.locked_at OR s.locked_by = excluded.locked_by
RETURNING ${TOKEN}::text AS token`,
    extend: `UPDATE ${table} AS s SET lock_until = ${after("$4")}
WHERE s.name = $1::text AND s.locked_by = $2::text AND ${TOKEN} = $3::bigint AND s.lock_until > ${NOW} RETURNING 1 AS done`,
    release: `UPDATE ${table} AS s SET lock_until = ${NOW}
WHERE s.name = $1::text AND s.locked_by = $2::text AND ${TOKEN} = $3::bigint AND s.lock_until > ${NOW} RETURNING 1 AS done`,
    retract: `UPDATE ${table} AS s SET lock_until = ${NOW}
WHERE s.name = $1::text AND s.locked_by = $2::text AND s.lock_until > ${NOW} RETURNING 1 AS done`,
    look: `SELECT s.locked_by AS holder, ${TOKEN}::text AS token,
  extract(epoch FROM s.lock_until - ${NOW})::float8 * 1000 AS left_ms FROM ${table} AS s WHERE s.name = $1::text`,
    list: `SELECT name FROM ${table} ORDER BY name LIMIT $1::int`,
  };
}
