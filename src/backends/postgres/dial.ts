/**
 * Connections of our own, by pg: dialled with a limit, over several hosts until
 * one is found that takes writes, and destroyed rather than ended when they hang.
 */
import type { Client, ClientConfig } from "pg";
import type { Clock } from "../../seam/clock.js";
import { ConclaveError } from "../../kit/errors.js";
import { bounded, onAbort } from "../../kit/wait.js";
import { isReadOnly, sqlState, unreachable } from "./errors.js";

/** Something of pg's that can be connected. `Pool` brings its own class. */
export type ClientClass = new (config: ClientConfig) => Client;

export interface Connection {
  readonly client: Client;
  /** Whether it can still be used. */
  readonly alive: boolean;
  /** Called once, when it ends for whatever reason. */
  onEnd(listener: () => void): void;
  /** At once: a client that hangs would never end. */
  destroy(): void;
}

/** Connects one client. What it emits later never reaches the program as an unheard error. */
export async function connect(
  Class: ClientClass,
  config: ClientConfig,
  signal: AbortSignal,
): Promise<Connection> {
  signal.throwIfAborted();
  const client = new Class(config);
  const connection = new PgConnection(client);
  const unlink = onAbort(signal, () => connection.destroy());
  try {
    await client.connect();
    signal.throwIfAborted();
    return connection;
  } catch (error) {
    connection.destroy();
    throw signal.aborted ? signal.reason : error;
  } finally {
    unlink();
  }
}

class PgConnection implements Connection {
  readonly client: Client;
  alive = true;
  #listeners: (() => void)[] = [];

  constructor(client: Client) {
    this.client = client;
    const ended = (): void => {
      this.alive = false;
      for (const listener of this.#listeners.splice(0)) listener();
    };
    client.on("error", ended);
    client.on("end", ended);
  }

  onEnd(listener: () => void): void {
    if (this.alive) this.#listeners.push(listener);
    else listener();
  }

  destroy(): void {
    this.client.connection.stream.destroy();
    this.alive = false;
    for (const listener of this.#listeners.splice(0)) listener();
  }
}

export interface DialerOptions {
  readonly clock: Clock;
  readonly hosts: readonly ClientConfig[];
  /** Must not be in a message. */
  readonly secrets: readonly string[];
  /** Longest that connecting to one host may take. */
  readonly dialTimeoutMs: number;
  readonly statementTimeoutMs: number;
}

/** Finds the primary among the hosts. */
export class Dialer {
  readonly #options: DialerOptions;
  /** Where to begin: the host that was the primary last. */
  #first = 0;
  /** A pooler that does not know the parameter refuses the connection: then it is left out. */
  #bare = false;

  constructor(options: DialerOptions) {
    this.#options = options;
  }

  /** Whether a pooler has answered: connections may not keep what they were told. */
  get pooled(): boolean {
    return this.#bare;
  }

  /** The present host is of no use: begin with the next. */
  turnAway(): void {
    this.#first = (this.#first + 1) % this.#options.hosts.length;
  }

  async dial(signal: AbortSignal): Promise<Connection> {
    const { hosts } = this.#options;
    let failed: unknown;
    for (let tried = 0; tried < hosts.length; tried++) {
      try {
        return await this.#primary(hosts[this.#first]!, signal);
      } catch (error) {
        this.turnAway();
        if (signal.aborted) throw error;
        // That one was a standby says less than why another could not be reached.
        if (failed === undefined || isStandby(failed)) failed = error;
      }
    }
    throw failed;
  }

  async #primary(config: ClientConfig, signal: AbortSignal): Promise<Connection> {
    const { clock, dialTimeoutMs } = this.#options;
    return bounded(clock, dialTimeoutMs, signal, "connecting to PostgreSQL", async (limited) => {
      const connection = await this.#connect(config, limited);
      const unlink = onAbort(limited, () => connection.destroy());
      try {
        await this.#demandPrimary(connection);
        limited.throwIfAborted();
        return connection;
      } catch (error) {
        connection.destroy();
        throw error;
      } finally {
        unlink();
      }
    });
  }

  async #demandPrimary({ client }: Connection): Promise<void> {
    if (this.#options.hosts.length === 1) return; // its own error says more
    const { rows } = await client.query<{ standby: boolean }>("SELECT pg_is_in_recovery() AS standby");
    if (rows[0]?.standby === true) throw standby();
  }

  async #connect(config: ClientConfig, signal: AbortSignal): Promise<Connection> {
    const Class = await clientClass();
    const timed = { ...config, statement_timeout: this.#options.statementTimeoutMs };
    try {
      if (this.#bare) return await connect(Class, config, signal);
      try {
        return await connect(Class, timed, signal);
      } catch (error) {
        // PgBouncer: "unsupported startup parameter: statement_timeout".
        if (sqlState(error) !== "08P01" || signal.aborted) throw error;
        const connection = await connect(Class, config, signal);
        this.#bare = true;
        return connection;
      }
    } catch (error) {
      throw signal.aborted ? error : unreachable(error, hostOf(config), this.#options.secrets);
    }
  }
}

/** `host:port`, without user and password. */
function hostOf({ connectionString = "" }: ClientConfig): string {
  return /^postgres:\/\/(?:[^@/?#]*@)?([^/?#]*)/.exec(connectionString)?.[1] || "the default host";
}

const STANDBY = "every host that answers is a standby, which takes no writes: name the primary too";

function standby(): ConclaveError {
  return new ConclaveError("unavailable", STANDBY);
}

function isStandby(error: unknown): boolean {
  return isReadOnly(error) || (error instanceof ConclaveError && error.message === STANDBY);
}

/** Loads pg, an optional peer. */
export async function clientClass(): Promise<ClientClass> {
  try {
    const { default: pg } = await import("pg");
    return pg.Client;
  } catch (error) {
    throw new ConclaveError(
      "unsupported",
      'a PostgreSQL URL needs the package "pg": run `npm install pg`, or hand in a client of your own',
      { cause: error },
    );
  }
}
