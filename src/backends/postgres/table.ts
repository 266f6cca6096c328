/** Which table, how it is quoted, what creates it, and the channel that tells of its changes. */
import { createHash } from "node:crypto";
import { invalid } from "../../kit/errors.js";

/** PostgreSQL cuts longer identifiers without a word: two tables would become one. */
const LONGEST_IDENTIFIER_BYTES = 63;

export interface TableName {
  readonly schema: string | undefined;
  readonly table: string;
}

export function tableName(schema: string | undefined, table: string): TableName {
  if (schema !== undefined) checkIdentifier("schema", schema);
  checkIdentifier("table", table);
  return { schema, table };
}

function checkIdentifier(what: string, name: string): void {
  // oxlint-disable-next-line no-control-regex -- control characters are what we look for
  if (name === "" || /[\u0000-\u001f\u007f]/.test(name))
    throw invalid(`the ${what} of the PostgreSQL table is empty or holds a control character`);
  if (Buffer.byteLength(name) > LONGEST_IDENTIFIER_BYTES)
    throw invalid(
      `the ${what} of the PostgreSQL table is longer than ${LONGEST_IDENTIFIER_BYTES} bytes, which PostgreSQL would cut`,
    );
}

export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** As SQL names it. Without a schema the connection's `search_path` decides. */
export function quoted({ schema, table }: TableName): string {
  const name = quoteIdentifier(table);
  return schema === undefined ? name : `${quoteIdentifier(schema)}.${name}`;
}

/** Channels belong to the database, so each table has its own. At most 63 bytes. */
export function channelOf({ schema = "", table }: TableName): string {
  const digest = createHash("sha256")
    .update(JSON.stringify([schema, table]))
    .digest("hex");
  return `conclave_${digest.slice(0, 16)}`;
}

/** Half of each page is left free, so that a renewal finds room beside the row and touches no index (HOT). */
export function tableDdl(name: TableName): string {
  return `CREATE TABLE IF NOT EXISTS ${quoted(name)} (
  key        text COLLATE "C" PRIMARY KEY,
  version    bigint NOT NULL,
  record     text NOT NULL,
  expires_at timestamptz
) WITH (fillfactor = 50)`;
}

/** The table that ShedLock documents. */
export function shedlockDdl(name: TableName): string {
  return `CREATE TABLE IF NOT EXISTS ${quoted(name)} (
  name       varchar(64) PRIMARY KEY,
  lock_until timestamp NOT NULL,
  locked_at  timestamp NOT NULL,
  locked_by  varchar(255) NOT NULL
)`;
}

/** For `PostgresFence`. Tokens of any store fit. */
export function fenceDdl(name: TableName): string {
  return `CREATE TABLE IF NOT EXISTS ${quoted(name)} (
  name  text COLLATE "C" PRIMARY KEY,
  token numeric(20) NOT NULL
) WITH (fillfactor = 50)`;
}

const DDL = { record: tableDdl, shedlock: shedlockDdl, fence: fenceDdl } as const;

/** What `conclave postgres schema` prints. */
export function schemaText(values: Readonly<Record<string, string | undefined>>): string {
  const { schema, layout = "record" } = values;
  if (layout !== "record" && layout !== "shedlock" && layout !== "fence")
    throw invalid(`--layout is ${JSON.stringify(layout)}; it must be record, shedlock or fence`);
  const name = tableName(schema, values["table"] ?? DEFAULT_TABLES[layout]);
  return `${DDL[layout](name)};\n-- GRANT SELECT, INSERT, UPDATE ON ${quoted(name)} TO your_role;`;
}

export const DEFAULT_TABLES = {
  record: "conclave_record",
  shedlock: "shedlock",
  fence: "conclave_fence",
} as const;
