/**
 * Keeps one live connection to some endpoint. Endpoints are tried in turn, the
 * next one a moment after the last has not answered, and the first that speaks
 * HTTP/2 wins: a host that swallows packets costs that moment, not the whole
 * dial timeout. A stopped server accepts TCP but says nothing: it never wins.
 */
import { type ClientHttp2Session, connect } from "node:http2";
import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls, type ConnectionOptions } from "node:tls";
import type { Clock, Timer } from "../../../seam/clock.js";
import { onAbort, sleep } from "../../../kit/wait.js";
import { Connection } from "./connection.js";
import { authority, type Endpoint, readTls, type TlsFiles } from "./endpoint.js";
import { dialError, EtcdError } from "./errors.js";

const STAGGER_MS = 500;
/** After all endpoints failed they are left in peace this long, however many ask. */
const REST_MS = 100;
const WINDOW_BYTES = 4 * 1024 * 1024;

export interface ChannelOptions {
  readonly endpoints: readonly Endpoint[];
  /** `undefined`: plain text. */
  readonly tls: TlsFiles | undefined;
  readonly dialTimeoutMs: number;
  readonly clock: Clock;
}

export class Channel {
  readonly #options: ChannelOptions;
  #current: Connection | undefined;
  #dialing: Promise<Connection> | undefined;
  #cursor = 0;
  #restUntil = 0;
  readonly #closing = new AbortController();

  constructor(options: ChannelOptions) {
    this.#options = options;
  }

  get many(): boolean {
    return this.#options.endpoints.length > 1;
  }

  get closed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** The live connection, if there is one. */
  get current(): Connection | undefined {
    return this.#current?.alive === true ? this.#current : undefined;
  }

  /** The live connection, dialled if there is none. Rejects when no endpoint can be reached. */
  ready(): Promise<Connection> {
    if (this.current !== undefined) return Promise.resolve(this.current);
    // A dial that began before the question may fail for a reason that is past: then once more.
    return this.#dialing === undefined ? this.#start() : this.#dialing.catch(() => this.#start());
  }

  #start(): Promise<Connection> {
    if (this.closed) return Promise.reject(this.#closedError());
    this.#dialing ??= this.#dial().finally(() => {
      this.#dialing = undefined;
    });
    return this.#dialing;
  }

  close(): void {
    this.#closing.abort(this.#closedError());
    this.#current?.end("the client was closed");
  }

  #closedError(): EtcdError {
    return new EtcdError("permanent", "state", "the etcd client is closed");
  }

  async #dial(): Promise<Connection> {
    const { clock, endpoints } = this.#options;
    await sleep(clock, this.#restUntil - clock.now(), this.#closing.signal);
    try {
      const connection = await this.#race(endpoints.map((_, i) => (this.#cursor + i) % endpoints.length));
      if (this.closed) {
        connection.end("the client was closed");
        throw this.#closedError();
      }
      this.#current = connection;
      return connection;
    } catch (error) {
      this.#restUntil = clock.now() + REST_MS;
      throw dialError(error, endpoints.map(authority).join(", "));
    }
  }

  /** Starts one dial after the other until one wins. */
  #race(order: readonly number[]): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const losers = new AbortController();
      let stagger: Timer | undefined;
      let running = 0;
      let next = 0;
      let settled = false;
      let firstError: EtcdError | undefined;
      const finish = (settle: () => void): void => {
        settled = true;
        stagger?.cancel();
        unlink();
        settle();
        losers.abort();
      };
      const unlink = onAbort(this.#closing.signal, () => finish(() => reject(this.#closing.signal.reason)));
      const start = (): void => {
        stagger?.cancel();
        const index = order[next++];
        const endpoint = index === undefined ? undefined : this.#options.endpoints[index];
        if (settled || index === undefined || endpoint === undefined) return;
        running++;
        stagger = this.#options.clock.after(STAGGER_MS, start);
        this.#attempt(endpoint, index, losers.signal).then(
          (connection) => {
            if (settled) connection.end("another endpoint was faster");
            else finish(() => resolve(connection));
          },
          (error: unknown) => {
            running--;
            const failure = dialError(error, authority(endpoint), this.#options.tls !== undefined);
            // What is permanent says more than that some other member is down.
            if (firstError === undefined || firstError.kind !== "permanent")
              firstError = failure.kind === "permanent" ? failure : (firstError ?? failure);
            if (settled) return;
            if (running === 0 && next >= order.length) finish(() => reject(firstError));
            else start();
          },
        );
      };
      start();
    });
  }

  async #attempt(endpoint: Endpoint, index: number, losing: AbortSignal): Promise<Connection> {
    const { tls, clock } = this.#options;
    const who = authority(endpoint);
    const secure = tls === undefined ? undefined : await readTls(tls);
    losing.throwIfAborted();
    const settings = { initialWindowSize: WINDOW_BYTES };
    const socket = openSocket(endpoint, secure);
    // Some faults (a TLS alert after the handshake) are told to the socket alone, some to the session: hear both, always.
    socket.on("error", () => {});
    const session = connect(`http://${who}`, { createConnection: () => socket, settings });
    session.on("error", () => {});
    try {
      await this.#greeting(session, socket, who, losing);
    } catch (error) {
      session.destroy();
      socket.destroy();
      throw error;
    }
    session.setLocalWindowSize(WINDOW_BYTES);
    return new Connection(session, socket, who, clock, (connection) => {
      if (this.#current !== connection) return;
      this.#current = undefined;
      this.#cursor = index + 1; // whatever was wrong with it, try another one first
    });
  }

  get #serves(): string {
    return this.#options.tls === undefined
      ? "does it serve TLS (etcds://)?"
      : "does it serve TLS, and is a client certificate missing?";
  }

  /** Waits for the server's first words. */
  #greeting(session: ClientHttp2Session, socket: Socket, who: string, losing: AbortSignal): Promise<void> {
    const { clock, dialTimeoutMs: limitMs } = this.#options;
    return new Promise((resolve, reject) => {
      const done = (settle: () => void): void => {
        timer.cancel();
        unlink();
        session.off("error", failed).off("close", closed).off("remoteSettings", greeted);
        socket.off("error", failed).off("close", closed);
        settle();
      };
      const failed = (error: Error): void => done(() => reject(error));
      const closed = (): void =>
        failed(silent(`${who} closed the connection during the dial: ${this.#serves}`));
      const greeted = (): void => done(resolve);
      const timer = clock.after(limitMs, () =>
        failed(
          silent(
            `etcd at ${who} did not answer the dial within ${limitMs} ms: check the address and the network`,
          ),
        ),
      );
      const unlink = onAbort(losing, () => failed(silent("another endpoint was faster")));
      session.on("error", failed).on("close", closed).on("remoteSettings", greeted);
      socket.on("error", failed).on("close", closed);
    });
  }
}

function openSocket({ host, port }: Endpoint, secure: ConnectionOptions | undefined): Socket {
  const socket =
    secure === undefined
      ? connectTcp({ host, port })
      : connectTls({
          host,
          port,
          ALPNProtocols: ["h2"],
          ...(isIP(host) === 0 && { servername: host }),
          ...secure,
        });
  return socket.setNoDelay(true);
}

function silent(message: string): EtcdError {
  return new EtcdError("retriable", "unavailable", message);
}
