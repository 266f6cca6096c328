/**
 * A fence in the program's own database: one statement inside the program's own
 * transaction. It keeps the highest token in a row and locks that row until the
 * transaction ends, so that a newer leader's check waits for it, and an older
 * one's that comes later is refused. What the transaction writes is then in
 * order of leaders, at every isolation level.
 */
import { ConclaveError, StaleLeaderError } from "../../kit/errors.js";
import { checkName } from "../../kit/names.js";
import { checkToken, parseToken } from "../../kit/token.js";
import type { Bearer } from "../../seam/fence.js";
import { type PostgresClient, rowsOf } from "./client.js";
import { isMissingTable } from "./errors.js";
import { DEFAULT_TABLES, fenceDdl, quoted, type TableName, tableName } from "./table.js";

/** What a {@link PostgresFence} is opened with. */
export interface PostgresFenceOptions {
  /** Name of the resource: of all that is written under one leader. */
  readonly name: string;
  /** Default: where the connection's `search_path` puts it. */
  readonly schema?: string | undefined;
  /** Default `conclave_fence`. */
  readonly table?: string | undefined;
}

/** Whatever sends statements inside the transaction: a `Client` of pg after BEGIN, a transaction of another client. */
export type PostgresTransaction = Pick<PostgresClient, "query">;

/** Refuses older tokens, inside your own transaction. */
export class PostgresFence {
  readonly #name: string;
  readonly #table: TableName;

  constructor(options: PostgresFenceOptions) {
    this.#name = checkName(options.name);
    this.#table = tableName(options.schema, options.table ?? DEFAULT_TABLES.fence);
  }

  /** Creates the table if it is not there. Once, at the start of the program, outside of transactions. */
  async create(client: PostgresTransaction): Promise<void> {
    await client.query(fenceDdl(this.#table));
  }

  /**
   * To be called in the transaction that writes, after BEGIN. A
   * `StaleLeaderError` = a newer leader has been here: roll back. An error of the
   * database = not known, and nothing is committed either.
   */
  async check(token: bigint, transaction: PostgresTransaction): Promise<void> {
    const values = [this.#name, checkToken(token).toString()];
    try {
      const [row] = rowsOf(await transaction.query(this.#raise(), values));
      if (row !== undefined) return;
      const [newer] = rowsOf(
        await transaction.query(
          `SELECT token::text AS token FROM ${quoted(this.#table)} WHERE name = $1`,
          values.slice(0, 1),
        ),
      );
      throw new StaleLeaderError(token, parseToken(newer?.["token"]) ?? token);
    } catch (error) {
      if (!isMissingTable(error)) throw error;
      throw new ConclaveError(
        "invalid",
        `the fence "${this.#name}" has no table yet: call create() at the start of the program, or run: ${fenceDdl(this.#table)}`,
      );
    }
  }

  /** The same in the name of one leader: looks at the clock first. */
  bind(bearer: Bearer): { check(transaction: PostgresTransaction): Promise<void> } {
    return {
      check: async (transaction) => {
        bearer.assertHeld();
        await this.check(bearer.token, transaction);
      },
    };
  }

  /** No row comes back if a higher token is there. */
  #raise(): string {
    return `INSERT INTO ${quoted(this.#table)} AS f (name, token) VALUES ($1::text, $2::numeric)
ON CONFLICT (name) DO UPDATE SET token = excluded.token WHERE f.token <= excluded.token RETURNING 1 AS passed`;
  }
}
