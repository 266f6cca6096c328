/** What the backend needs of a PostgreSQL client. */

/** Ends a subscription: a function, or an object that has one. */
export type Unlisten = (() => unknown) | { unlisten(): unknown };

/**
 * Anything that can send a statement: `Pool` or `Client` of pg, PGlite, or a
 * wrapper of a few lines around another client.
 */
export interface PostgresClient {
  query(text: string, values?: unknown[]): Promise<{ readonly rows: readonly object[] }>;
  /** Where there is one, followers are woken by it; `Pool` of pg needs none. Resolves when the server listens. */
  listen?(channel: string, notified: (payload: string) => void): Promise<Unlisten>;
}

export type Row = Readonly<Record<string, unknown>>;

/** Sends statements, each in a transaction of its own. */
export interface Session extends AsyncDisposable {
  /** Rejects with the client's own error, or with the signal's reason as soon as it aborts. */
  query(text: string, values: unknown[], signal: AbortSignal): Promise<readonly Row[]>;
}

/** A connection that listens. */
export interface Subscription {
  /** Resolves when nothing will be heard any more. */
  readonly ended: Promise<void>;
  /** Rejects if the other side does not answer; absent where the client looks after it. */
  ping?(): Promise<void>;
  close(): void;
}

/** Begins to listen on a channel. */
export type Subscribe = (
  channel: string,
  notified: (payload: string) => void,
  signal: AbortSignal,
) => Promise<Subscription>;

export function rowsOf(result: { readonly rows: readonly object[] }): readonly Row[] {
  return result.rows as readonly Row[];
}
