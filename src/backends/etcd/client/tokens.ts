/**
 * The authentication token: fetched when first needed, renewed before it ages,
 * thrown away when etcd refuses it. One request for it at a time, however many
 * calls wait. The password goes to etcd and nowhere else.
 */
import type { Clock } from "../../../seam/clock.js";
import { StopSource } from "../../../kit/stop.js";
import { limited } from "../../../kit/wait.js";
import type { Connection } from "./connection.js";
import { EtcdError } from "./errors.js";
import { decodeToken, encodeAuthenticate, methods } from "./messages.js";

export interface Credentials {
  readonly username: string;
  readonly password: string;
}

/** etcd's tokens live five minutes by default. */
const RENEW_AFTER_MS = 150_000;
const AUTH_LIMIT_MS = 5_000;

export class Tokens {
  readonly #credentials: Credentials | undefined;
  readonly #clock: Clock;
  #token: { readonly text: string | undefined; readonly at: number } | undefined;
  #fetching: Promise<string | undefined> | undefined;

  constructor(credentials: Credentials | undefined, clock: Clock) {
    this.#credentials = credentials;
    this.#clock = clock;
  }

  /** Whether there are credentials at all. */
  get needed(): boolean {
    return this.#credentials !== undefined;
  }

  /** `undefined`: no credentials, or the server has authentication switched off. */
  async token(connection: Connection): Promise<string | undefined> {
    if (this.#credentials === undefined) return undefined;
    if (this.#token === undefined) return this.#fetch(connection, this.#credentials);
    if (this.#clock.now() - this.#token.at > RENEW_AFTER_MS) {
      // The old one still serves while the new one is on its way.
      this.#fetch(connection, this.#credentials).catch(() => {});
    }
    return this.#token.text;
  }

  /** etcd refused this token; a newer one is left alone. */
  invalidate(token: string | undefined): void {
    if (this.#token?.text === token) this.#token = undefined;
  }

  #fetch(connection: Connection, credentials: Credentials): Promise<string | undefined> {
    this.#fetching ??= this.#authenticate(connection, credentials).finally(() => {
      this.#fetching = undefined;
    });
    return this.#fetching;
  }

  async #authenticate(
    connection: Connection,
    { username, password }: Credentials,
  ): Promise<string | undefined> {
    const at = this.#clock.now();
    const body = encodeAuthenticate(username, password);
    let text: string | undefined;
    try {
      const never = new StopSource();
      const answer = await limited(this.#clock, AUTH_LIMIT_MS, never, "authentication at etcd", (signal) =>
        connection.unary(
          { path: methods.authenticate, body, limitMs: AUTH_LIMIT_MS, signal, secret: password },
          undefined,
        ),
      );
      text = decodeToken(answer);
    } catch (error) {
      if (!(error instanceof EtcdError) || !error.message.includes("authentication is not enabled"))
        throw error;
    }
    this.#token = { text, at };
    return text;
  }
}
