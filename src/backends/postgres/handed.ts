/**
 * A client that was handed in: it belongs to the program, so it is not closed,
 * and what else runs on it is not ours to know. Every statement is raced against
 * the caller's signal, since clients wait forever by themselves.
 */
import type { Client, ClientConfig } from "pg";
import { ConclaveError, invalid } from "../../kit/errors.js";
import { onAbort, untilAborted } from "../../kit/wait.js";
import type { Subscription, Subscribe, PostgresClient, Row, Session, Unlisten } from "./client.js";
import { rowsOf } from "./client.js";
import { type ClientClass, connect } from "./dial.js";
import { NamedStatements, type NamingClient } from "./named.js";

/** `Pool` of pg, as far as it is used here. */
interface PoolLike {
  connect(): Promise<PoolClientLike>;
  readonly totalCount: number;
  readonly options: ClientConfig;
  readonly Client?: ClientClass;
}

interface PoolClientLike extends NamingClient {
  release(destroy?: boolean): void;
}

/** A connection that can tell whether it is inside a transaction. */
interface Transactional {
  getTransactionStatus(): string | null;
}

function isPool(client: object): client is PoolLike {
  return "connect" in client && typeof client.connect === "function" && "totalCount" in client;
}

/** pg's `Client` takes one statement after the other, and warns if it is given two. */
function isSingle(client: object): client is NamingClient {
  return "escapeLiteral" in client && "connection" in client;
}

export function handedSession(client: PostgresClient): Session {
  if (typeof client !== "object" || client === null || typeof client.query !== "function")
    throw invalid("client must have a method query(text, values), as Pool and Client of pg have");
  if (isPool(client)) return new PooledSession(client);
  return isSingle(client) ? new SingleSession(client) : new PlainSession(client);
}

class PlainSession implements Session {
  readonly #client: PostgresClient;

  constructor(client: PostgresClient) {
    this.#client = client;
  }

  async query(text: string, values: unknown[], signal: AbortSignal): Promise<readonly Row[]> {
    signal.throwIfAborted();
    return rowsOf(await untilAborted(signal, this.#client.query(text, values)));
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

/** One statement after the other. */
class SingleSession implements Session {
  readonly #client: NamingClient;
  readonly #named = new NamedStatements();
  #last: Promise<unknown> = Promise.resolve();

  constructor(client: NamingClient) {
    this.#client = client;
  }

  async query(text: string, values: unknown[], signal: AbortSignal): Promise<readonly Row[]> {
    // Given up before its turn came: it is not sent any more.
    const sent = this.#last.then(() => {
      signal.throwIfAborted();
      return send(this.#named, this.#client, text, values);
    });
    this.#last = sent.catch(() => {});
    return untilAborted(signal, sent);
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

/** A statement that never got a connection was not sent, and never will be. One that hangs takes its connection with it. */
class PooledSession implements Session {
  readonly #pool: PoolLike;
  readonly #named = new NamedStatements();

  constructor(pool: PoolLike) {
    this.#pool = pool;
  }

  async query(text: string, values: unknown[], signal: AbortSignal): Promise<readonly Row[]> {
    signal.throwIfAborted();
    const connecting = this.#pool.connect();
    let client: PoolClientLike;
    try {
      client = await untilAborted(signal, connecting);
    } catch (error) {
      if (signal.aborted) connecting.then((late) => late.release()).catch(() => {});
      throw error;
    }
    let hangs = true;
    try {
      const rows = await untilAborted(signal, send(this.#named, client, text, values));
      hangs = false;
      return rows;
    } catch (error) {
      hangs = signal.aborted;
      throw error;
    } finally {
      client.release(hangs);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

async function send(
  named: NamedStatements,
  client: NamingClient,
  text: string,
  values: unknown[],
): Promise<readonly Row[]> {
  const rows = await named.query(client, text, values);
  if (isTransactional(client) && !["I", null].includes(client.getTransactionStatus())) throw inTransaction();
  return rows;
}

function isTransactional(client: object): client is Transactional {
  return "getTransactionStatus" in client && typeof client.getTransactionStatus === "function";
}

function inTransaction(): ConclaveError {
  return new ConclaveError(
    "unsupported",
    "the PostgreSQL client that was handed in is inside a transaction, so a leadership would count only once that commits: hand in a Pool, or a Client that nobody else uses",
  );
}

/** How to listen with what was handed in; `undefined`: followers poll. */
export function handedSubscribe(client: PostgresClient): Subscribe | undefined {
  const { listen } = client;
  if (listen !== undefined)
    return async (channel, notified) => new HandedSubscription(await listen.call(client, channel, notified));
  if (!isPool(client) || client.Client === undefined) return undefined;
  const { Client: Class, options } = client;
  // A connection of its own: one of the pool would be missing there, for good.
  return (channel, notified, signal) =>
    subscribe(async (limited) => connect(Class, options, limited), channel, notified, signal);
}

class HandedSubscription implements Subscription {
  readonly ended: Promise<void>;
  readonly #unlisten: Unlisten;
  #end!: () => void;

  constructor(unlisten: Unlisten) {
    this.#unlisten = unlisten;
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  close(): void {
    this.#end();
    const unlisten = this.#unlisten;
    void (async () => (typeof unlisten === "function" ? unlisten() : unlisten.unlisten()))().catch(() => {});
  }
}

/** Listens on a connection of pg that is dialled for it. */
export async function subscribe(
  dial: (
    signal: AbortSignal,
  ) => Promise<{ readonly client: Client; onEnd(f: () => void): void; destroy(): void }>,
  channel: string,
  notified: (payload: string) => void,
  signal: AbortSignal,
): Promise<Subscription> {
  const connection = await dial(signal);
  const { client } = connection;
  client.on("notification", (message) => {
    if (message.channel === channel) notified(message.payload ?? "");
  });
  const unlink = onAbort(signal, () => connection.destroy());
  try {
    await client.query(`LISTEN ${channel}`);
    signal.throwIfAborted();
  } catch (error) {
    connection.destroy();
    throw error;
  } finally {
    unlink();
  }
  return {
    ended: new Promise((resolve) => connection.onEnd(resolve)),
    ping: async () => void (await client.query("SELECT 1")),
    close: () => connection.destroy(),
  };
}
