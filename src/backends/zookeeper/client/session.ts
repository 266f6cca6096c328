/**
 * A session over its connections. While it lives and has no connection it makes
 * one, to one server after the other, with the same id and password. Whether it
 * is over is decided by the ensemble alone, in its answer to a handshake.
 */
import { Backoff } from "../../../kit/backoff.js";
import { StopSource } from "../../../kit/stop.js";
import { limited, sleep, untilAborted } from "../../../kit/wait.js";
import type { CallLimits, SessionListener, ZooKeeperConnection, ZooKeeperSession } from "../client.js";
import { WireConnection } from "./connection.js";
import type { ConnectionOptions } from "./connection.js";
import { authority, type Endpoint } from "./endpoint.js";
import { HandshakeRefused, connectionLost, unreadable, ZooKeeperError } from "./errors.js";
import type { ConnectResponse } from "./messages.js";
import type { SeenZxid } from "./seen-zxid.js";

const FIRST_RETRY_MS = 20;
const LONGEST_RETRY_MS = 1_000;

export interface WireSessionOptions extends ConnectionOptions {
  /** In the order they are tried. */
  readonly endpoints: readonly Endpoint[];
  readonly seen: SeenZxid;
  /** It is closed, abandoned or over. */
  ended(session: WireSession): void;
}

/** Longest that connecting to one server may take. */
export function dialLimitMs(timeoutMs: number, hosts: number): number {
  return Math.min(5_000, Math.max(500, timeoutMs / (2 * hosts)));
}

export class WireSession implements ZooKeeperSession {
  readonly id: bigint;
  readonly timeoutMs: number;
  readonly #options: WireSessionOptions;
  readonly #password: Buffer;
  readonly #stop = new StopSource();
  readonly #listeners = new Set<SessionListener>();
  #connection: WireConnection | undefined;
  #waiting = new Set<(connection: WireConnection) => void>();
  #next: number;
  #expired = false;
  /** Why the last attempt to connect failed. */
  #failure: unknown;

  /** `next`: number of the endpoint to try next; `open` connects for the first time and is told of this session's end of connections. */
  constructor(options: WireSessionOptions, granted: ConnectResponse, next: number) {
    this.#options = options;
    this.#password = granted.password;
    this.id = granted.sessionId;
    this.timeoutMs = granted.timeoutMs;
    this.#next = next;
  }

  get expired(): boolean {
    return this.#expired;
  }

  listen(listener: SessionListener): void {
    this.#listeners.add(listener);
  }

  connected({ signal, limitMs }: CallLimits): Promise<ZooKeeperConnection> {
    if (this.#connection !== undefined) return Promise.resolve(this.#connection);
    if (this.#stop.aborted) return Promise.reject(this.#over());
    let wake: ((connection: WireConnection) => void) | undefined;
    const connected = limited(this.#options.clock, limitMs, signal, "connecting to ZooKeeper", (stop) =>
      untilAborted(
        this.#stop,
        new Promise<WireConnection>((resolve) => {
          wake = resolve;
          this.#waiting.add(resolve);
          stop.addEventListener("abort", () => this.#waiting.delete(resolve));
        }),
      ),
    );
    return connected
      .catch((error: unknown) => {
        // "Not within so many ms" says less than why.
        throw this.#failure !== undefined && !signal.aborted && !this.#stop.aborted ? this.#failure : error;
      })
      .finally(() => this.#waiting.delete(wake!));
  }

  async close(limits: CallLimits): Promise<void> {
    const connection = this.#connection;
    this.#end();
    try {
      await connection?.closeSession(limits);
    } finally {
      connection?.drop("the session was closed");
    }
    if (connection === undefined)
      throw connectionLost("its servers", "the session could not be closed, and runs out by itself");
  }

  abandon(): void {
    this.#end();
    this.#connection?.drop("it is not needed any more");
  }

  /** Takes a connection into use. */
  use(connection: WireConnection): void {
    if (this.#stop.aborted) return connection.drop("the session is over");
    if (connection.closed) return void this.#connect();
    this.#connection = connection;
    this.#failure = undefined;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const resolve of waiting) resolve(connection);
    for (const listener of this.#listeners) listener.connected(connection);
  }

  /** Its connection has ended. */
  disconnected(connection: WireConnection): void {
    if (this.#connection !== connection) return;
    this.#connection = undefined;
    void this.#connect();
  }

  async #connect(): Promise<void> {
    const { clock, endpoints } = this.#options;
    const backoff = new Backoff(clock, FIRST_RETRY_MS, LONGEST_RETRY_MS);
    for (let tries = 1; !this.#stop.aborted; tries++) {
      try {
        const connection = await this.#open(endpoints[this.#next++ % endpoints.length]!);
        return connection === undefined ? this.#expire() : this.use(connection);
      } catch (error) {
        this.#failure = error;
        if (error instanceof ZooKeeperError && error.kind === "lost") return this.#expire();
        if (error instanceof HandshakeRefused)
          this.#options.seen.refused(endpoints.length, 2 * this.timeoutMs);
      }
      // All servers once, then a pause.
      if (tries % endpoints.length === 0) await sleep(clock, backoff.next(), this.#stop);
    }
  }

  /** `undefined`: the ensemble says that the session is over. */
  async #open(endpoint: Endpoint): Promise<WireConnection | undefined> {
    const { clock, endpoints, seen } = this.#options;
    const limitMs = dialLimitMs(this.timeoutMs, endpoints.length);
    const handshake = {
      ...{ lastZxid: seen.zxid, timeoutMs: this.timeoutMs, sessionId: this.id, password: this.#password },
    };
    const { connection, response } = await limited(
      clock,
      limitMs,
      this.#stop,
      "connecting to ZooKeeper",
      (stop) => openConnection(endpoint, this.#options, handshake, (ended) => this.disconnected(ended), stop),
    );
    if (response.timeoutMs > 0 && response.sessionId === this.id) return connection;
    connection.drop("it gave no session, or another one");
    if (response.timeoutMs <= 0) return undefined;
    throw unreadable(authority(endpoint), "a session that was not asked for");
  }

  #expire(): void {
    if (this.#stop.aborted) return;
    this.#expired = true;
    this.#end();
    for (const listener of this.#listeners) listener.expired();
  }

  #end(): void {
    this.#stop.stop(this.#over());
    this.#options.ended(this);
  }

  #over(): ZooKeeperError {
    return this.#expired
      ? new ZooKeeperError("lost", "unavailable", "ZooKeeper says that the session is over")
      : new ZooKeeperError("retriable", "unavailable", "the ZooKeeper session was closed");
  }
}

/** Opens a connection and checks what every server must be. `ended` is called once when it ends, if it was opened. */
export async function openConnection(
  endpoint: Endpoint,
  options: ConnectionOptions & { readonly seen: SeenZxid },
  handshake: Parameters<typeof WireConnection.open>[2],
  ended: (connection: WireConnection) => void,
  stop: Parameters<typeof WireConnection.open>[4],
): Promise<{ connection: WireConnection; response: ConnectResponse }> {
  let opened: WireConnection | undefined;
  const listener = {
    zxid: (zxid: bigint) => options.seen.saw(zxid),
    history: () => options.seen.history,
    closed: () => opened && ended(opened),
  };
  const answer = await WireConnection.open(endpoint, options, handshake, listener, stop);
  opened = answer.connection;
  options.seen.accepted();
  if (answer.response.readOnly) {
    opened.drop("it is read-only");
    throw new ZooKeeperError(
      "retriable",
      "unavailable",
      "this ZooKeeper server is cut off from its ensemble and read-only: it decides nothing; trying another",
    );
  }
  return answer;
}
