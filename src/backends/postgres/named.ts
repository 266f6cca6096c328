/**
 * Statements that the server parses and plans once for each connection: that is
 * two thirds of what a grant costs it. Behind a pooler that hands every
 * transaction to another connection the name is not known there, or is known
 * already. The server then refuses the statement before it does anything, and
 * from then on statements are sent without names.
 */
import { createHash } from "node:crypto";
import { rowsOf, type Row } from "./client.js";
import { sqlState } from "./errors.js";

/** `Client` of pg, alone or out of a `Pool`, as far as it is used here. */
export interface NamingClient {
  query(statement: {
    readonly text: string;
    readonly values: unknown[];
    readonly name?: string;
  }): Promise<{ readonly rows: readonly object[] }>;
}

/** No such prepared statement; there is one of that name already. Neither was carried out. */
const POOLED = ["26000", "42P05"];

export class NamedStatements {
  readonly #names = new Map<string, string>();
  #named = true;

  /** For a server that is known to be a pooler. */
  turnOff(): void {
    this.#named = false;
  }

  async query(client: NamingClient, text: string, values: unknown[]): Promise<readonly Row[]> {
    // What takes no values runs once, or is not asked for often: creating the table, marking a timeline.
    if (!this.#named || values.length === 0) return rowsOf(await client.query({ text, values }));
    try {
      return rowsOf(await client.query({ name: this.#nameOf(text), text, values }));
    } catch (error) {
      if (!POOLED.includes(sqlState(error) ?? "")) throw error;
      this.#named = false;
      return rowsOf(await client.query({ text, values }));
    }
  }

  /** By what it says: another candidate's statement of this name, behind a pooler, is the same one. */
  #nameOf(text: string): string {
    const known = this.#names.get(text);
    if (known !== undefined) return known;
    const name = `conclave_${createHash("sha256").update(text).digest("hex").slice(0, 16)}`;
    this.#names.set(text, name);
    return name;
  }
}
