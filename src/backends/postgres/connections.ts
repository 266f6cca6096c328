/**
 * A few connections of our own: never one of the program's pool, which may be
 * used up when a lease has to be renewed. One is kept; others are opened when
 * statements wait, and closed when nobody uses them.
 */
import type { Clock, Timer } from "../../seam/clock.js";
import { ConclaveError } from "../../kit/errors.js";
import { onAbort, untilAborted } from "../../kit/wait.js";
import type { Row, Session } from "./client.js";
import type { Connection, Dialer } from "./dial.js";
import { endsSession, isReadOnly } from "./errors.js";
import { NamedStatements } from "./named.js";

/** How long a connection beyond the first stays open without use. */
const SPARE_MS = 10_000;

/** A turn to send a statement: on a connection that is free, or on one to be dialled. */
type Turn = Connection | "dial";

export class OwnConnections implements Session {
  readonly #clock: Clock;
  readonly #dialer: Dialer;
  readonly #most: number;
  readonly #named = new NamedStatements();
  readonly #idle: Connection[] = [];
  readonly #all = new Set<Connection>();
  readonly #waiting: { give(turn: Turn): void }[] = [];
  /** Turns in use, those that dial included. */
  #taken = 0;
  #sweeper: Timer | undefined;
  #closed = false;

  constructor(clock: Clock, dialer: Dialer, most: number) {
    this.#clock = clock;
    this.#dialer = dialer;
    this.#most = most;
  }

  async query(text: string, values: unknown[], signal: AbortSignal): Promise<readonly Row[]> {
    const connection = await this.#take(signal);
    const unlink = onAbort(signal, () => connection.destroy());
    try {
      if (this.#dialer.pooled) this.#named.turnOff();
      return await untilAborted(signal, this.#named.query(connection.client, text, values));
    } catch (error) {
      if (isReadOnly(error)) this.#dialer.turnAway();
      if (endsSession(error)) connection.destroy();
      throw error;
    } finally {
      unlink();
      this.#giveBack(connection);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    this.#sweeper?.cancel();
    for (const connection of this.#all) connection.destroy();
  }

  async #take(signal: AbortSignal): Promise<Connection> {
    signal.throwIfAborted();
    if (this.#closed) throw new ConclaveError("state", "the PostgreSQL backend is closed");
    const turn = this.#turn() ?? (await this.#wait(signal));
    if (turn !== "dial") return turn;
    try {
      const connection = await this.#dialer.dial(signal);
      this.#all.add(connection);
      connection.onEnd(() => this.#all.delete(connection));
      if (this.#closed) connection.destroy();
      return connection;
    } catch (error) {
      this.#passOn();
      throw error;
    }
  }

  /** Now, if there is one. */
  #turn(): Turn | undefined {
    let connection = this.#idle.pop();
    while (connection?.alive === false) connection = this.#idle.pop();
    if (connection === undefined && this.#taken >= this.#most) return undefined;
    this.#taken++;
    return connection ?? "dial";
  }

  #wait(signal: AbortSignal): Promise<Turn> {
    return new Promise((resolve, reject) => {
      const waiter = {
        give: (turn: Turn): void => {
          unlink();
          resolve(turn);
        },
      };
      this.#waiting.push(waiter);
      const unlink = onAbort(signal, () => {
        this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
        reject(signal.reason as Error);
      });
    });
  }

  #giveBack(connection: Connection): void {
    if (!connection.alive) return this.#passOn();
    const next = this.#waiting.shift();
    if (next !== undefined) return next.give(connection);
    this.#taken--;
    this.#idle.push(connection);
    if (this.#idle.length > 1) this.#sweep();
  }

  /** The turn is free, but there is no connection to it. */
  #passOn(): void {
    const next = this.#waiting.shift();
    if (next !== undefined) next.give("dial");
    else this.#taken--;
  }

  /** The one used last stays. */
  #sweep(): void {
    if (this.#closed || this.#sweeper !== undefined) return;
    this.#sweeper = this.#clock.after(SPARE_MS, () => {
      this.#sweeper = undefined;
      for (const spare of this.#idle.splice(0, Math.max(0, this.#idle.length - 1))) spare.destroy();
    });
  }
}
