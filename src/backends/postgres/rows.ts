/** Rows of the table: reading and compare-and-swap, and creating the table when it is not there. */
import type { Clock } from "../../seam/clock.js";
import { ConclaveError } from "../../kit/errors.js";
import type { Row, Session } from "./client.js";
import { failure, isBeaten, isMissingTable, sqlState } from "./errors.js";
import { type Statements, statements } from "./sql.js";
import { channelOf, type TableName, tableDdl } from "./table.js";

export interface RowsOptions {
  readonly clock: Clock;
  readonly session: Session;
  readonly table: TableName;
  readonly secrets: readonly string[];
  readonly warn: (message: string) => void;
}

/** A row as it was read. */
export interface ReadRow {
  readonly version: bigint;
  readonly record: string;
  /** Milliseconds until it expires by the server's clock; `undefined` if it never does. */
  readonly leftMs: number | undefined;
  /** Whether a primary answered: a standby may lag. */
  readonly current: boolean;
}

export interface RowWrite {
  readonly key: string;
  readonly expected: bigint | null;
  readonly record: string;
  readonly ttlMs: number | null;
  /** Whether those who listen are told. */
  readonly tell: boolean;
}

/** A leadership may not be granted yet: the timeline is too young (see timeline.ts). */
export interface TooYoung {
  readonly waitMs: number;
  /** Whether somebody has noted when this timeline was first seen. */
  readonly marked: boolean;
}

export class Rows {
  readonly #options: RowsOptions;
  readonly #sql: Statements;
  readonly channel: string;

  constructor(options: RowsOptions) {
    this.#options = options;
    this.#sql = statements(options.table);
    this.channel = channelOf(options.table);
  }

  async read(key: string, what: string, signal: AbortSignal): Promise<ReadRow | null> {
    const [row] = await this.#ask(this.#sql.read, [key], what, signal);
    if (row === undefined) return null;
    return {
      version: BigInt(String(row["version"])),
      record: String(row["record"]),
      leftMs: row["left_ms"] === null ? undefined : Number(row["left_ms"]),
      current: row["standby"] !== true,
    };
  }

  /** The new version; `null` if the row had another than the expected one. */
  async write(write: RowWrite, what: string, signal: AbortSignal): Promise<bigint | null> {
    const values = this.#values(write);
    const text = write.expected === null ? this.#sql.insert : this.#sql.update;
    return this.#swap(async () => versionOf((await this.#ask(text, values, what, signal))[0]));
  }

  /** As {@link write}, for a write that makes somebody leader: not while the timeline is too young. */
  async grant(write: RowWrite, what: string, signal: AbortSignal): Promise<bigint | TooYoung | null> {
    const ttlMs = write.ttlMs ?? 0;
    const values = [...this.#values(write), ttlMs];
    const text = write.expected === null ? this.#sql.grantInsert : this.#sql.grantUpdate;
    return this.#swap<bigint | TooYoung | null>(async () => {
      const [row] = await this.#ask(text, values, what, signal);
      if (row?.["free"] !== false) return versionOf(row);
      const marked = row["marked"] === true;
      return { marked, waitMs: marked ? Math.max(1, ttlMs - Number(row["age_ms"])) : ttlMs };
    });
  }

  /** Many writes in one statement. Only those keys come back that had the expected version. */
  async renewMany(writes: readonly RowWrite[], signal: AbortSignal): Promise<ReadonlyMap<string, bigint>> {
    const values = [
      writes.map(({ key }) => key),
      writes.map(({ expected }) => String(expected)),
      writes.map(({ record }) => record),
      writes.map(({ ttlMs }) => ttlMs),
    ];
    const what = `renewing ${writes.length} elections`;
    const rows = await this.#swap(() => this.#ask(this.#sql.renewMany, values, what, signal));
    return new Map(rows?.map((row) => [String(row["key"]), BigInt(String(row["version"]))]));
  }

  /** `false`: the row has another version, or one that the clock has not reached; it was left alone. */
  async remove(key: string, expected: bigint, what: string, signal: AbortSignal): Promise<boolean> {
    const values = [key, expected.toString()];
    const version = await this.#swap(async () =>
      versionOf((await this.#ask(this.#sql.remove, values, what, signal))[0]),
    );
    return version !== null;
  }

  /** Keys that begin with this prefix, which ends with a colon, without it. */
  async list(prefix: string, most: number, signal: AbortSignal): Promise<string[]> {
    const after = `${prefix.slice(0, -1)};`; // the character after the colon
    const rows = await this.#ask(this.#sql.list, [prefix, after, most], "listing elections", signal);
    return rows.map((row) => String(row["key"]).slice(prefix.length));
  }

  async notify(payload: string, signal: AbortSignal): Promise<void> {
    await this.#options.session.query("SELECT pg_notify($1, $2)::text", [this.channel, payload], signal);
  }

  async markTimeline(signal: AbortSignal): Promise<void> {
    await this.#ask(this.#sql.markTimeline, [], "noting the timeline", signal);
  }

  #values({ key, expected, record, ttlMs, tell }: RowWrite): unknown[] {
    const values = [key, record, ttlMs, tell ? this.channel : ""];
    return expected === null ? values : [...values, String(expected)];
  }

  /** Two transactions that got in each other's way: ours was certainly not carried out. */
  async #swap<T>(write: () => Promise<T>): Promise<T | null> {
    try {
      return await write();
    } catch (error) {
      if (error instanceof ConclaveError && isBeaten(error.cause)) return null;
      throw error;
    }
  }

  async #ask(text: string, values: unknown[], what: string, signal: AbortSignal): Promise<readonly Row[]> {
    const { session } = this.#options;
    try {
      try {
        return await session.query(text, values, signal);
      } catch (error) {
        if (!isMissingTable(error)) throw error;
        await this.#create(signal);
        return await session.query(text, values, signal);
      }
    } catch (error) {
      throw this.#failure(error, what);
    }
  }

  async #create(signal: AbortSignal): Promise<void> {
    const { session, table } = this.#options;
    try {
      await session.query(tableDdl(table), [], signal);
    } catch (error) {
      // Somebody else created it at the same moment, in spite of IF NOT EXISTS.
      if (!["23505", "42P07", "42710"].includes(sqlState(error) ?? "")) throw error;
    }
    // Where it cannot be known, grants are not held back by it either.
    await session.query(this.#sql.firstTimeline, [], signal).catch(() => {});
  }

  #failure(error: unknown, what: string): unknown {
    const { secrets, table } = this.#options;
    return failure(error, { what, secrets, ddl: tableDdl(table) });
  }
}

function versionOf(row: Row | undefined): bigint | null {
  const version = row?.["version"];
  return typeof version === "string" ? BigInt(version) : null;
}
