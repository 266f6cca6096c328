/**
 * gRPC on one HTTP/2 connection. Knows nothing of etcd: paths and bytes go in,
 * bytes or an error come out. Pings detect a connection that no longer answers;
 * it is closed and replaced, never repaired.
 */
import type {
  ClientHttp2Session,
  ClientHttp2Stream,
  IncomingHttpHeaders,
  OutgoingHttpHeaders,
} from "node:http2";
import { constants } from "node:http2";
import type { Socket } from "node:net";
import type { Clock, Timer } from "../../../seam/clock.js";
import type { Stop } from "../../../kit/stop.js";
import { onAbort, throwIfStopped } from "../../../kit/wait.js";
import { PreopenedStream } from "./preopened-stream.js";
import { decodeMessage, EtcdError, httpError, statusError, unreadable } from "./errors.js";
import { frame, Unframer } from "./framing.js";
import { SilencePings } from "./silence-pings.js";

/** Delay after an answer, so that the caller that waited for it runs first. */
const PREOPEN_DELAY_MS = 5;
const MANY_STREAMS = 16;

export interface StreamHandlers {
  message(bytes: Uint8Array): void;
  /** Called exactly once. `undefined`: the server ended the stream without an error. */
  ended(error: EtcdError | undefined): void;
}

export interface GrpcStream {
  send(bytes: Uint8Array): void;
  close(): void;
}

export interface UnaryRequest {
  readonly path: string;
  readonly body: Uint8Array;
  readonly limitMs: number;
  readonly signal: Stop;
  /** What of the body must not appear in an error. */
  readonly secret?: string;
  /** Another like it will follow: while a watch stream is open too, its stream is opened in advance. */
  readonly again?: boolean;
}

export class Connection {
  /** When the server last said anything of substance (pings are answered by the transport alone). */
  heardAt: number;
  readonly who: string;
  readonly #session: ClientHttp2Session;
  readonly #socket: Socket;
  readonly #clock: Clock;
  readonly #ended: (connection: Connection) => void;
  /** Single calls: each waits for an answer. */
  #calls = 0;
  /** Long-lived streams (watches): a request is likely to follow an event on them. */
  #streams = 0;
  readonly #preopened: PreopenedStream;
  readonly #pings: SilencePings;
  #opening: Timer | undefined;
  #alive = true;
  #why: EtcdError | undefined;

  constructor(
    session: ClientHttp2Session,
    socket: Socket,
    who: string,
    clock: Clock,
    ended: (connection: Connection) => void,
  ) {
    this.#session = session;
    this.#socket = socket;
    this.who = who;
    this.#clock = clock;
    this.#ended = ended;
    this.heardAt = clock.now();
    this.#pings = new SilencePings(clock, {
      ping: (answered) => session.ping((error) => void (error === null && answered())),
      waiting: () => this.#calls > 0,
      silent: () => this.end("it stopped answering pings"),
    });
    this.#pings.heard(this.heardAt);
    this.#preopened = new PreopenedStream((path, token, handlers) =>
      this.#request(path, token, undefined, handlers),
    );
    session.on("error", () => this.end("the connection broke"));
    session.on("close", () => this.end("the connection was closed"));
    socket.on("close", () => this.end("the connection was closed"));
    session.on("goaway", () => this.end("the server sent us away"));
  }

  get alive(): boolean {
    return this.#alive;
  }

  /** Ends the connection at once; every call and stream on it fails. */
  end(why: string): void {
    if (!this.#alive) return;
    this.#alive = false;
    this.#why = new EtcdError(
      "retriable",
      "unavailable",
      `lost the connection to etcd at ${this.who}: ${why}`,
    );
    this.#pings.close();
    this.#opening?.cancel();
    this.#session.destroy();
    this.#socket.destroy();
    this.#ended(this);
  }

  /** One request, one answer. Rejects when the signal aborts; the server is told to stop. */
  unary(request: UnaryRequest, token: string | undefined): Promise<Uint8Array> {
    const { path, body, limitMs, signal, secret = "", again = false } = request;
    return new Promise((resolve, reject) => {
      throwIfStopped(signal);
      let answer: Uint8Array | undefined;
      const handlers: StreamHandlers = {
        message: (bytes) => {
          answer = bytes;
        },
        ended: (error) => {
          this.#calls--;
          unlink();
          if (error !== undefined) return reject(error);
          if (answer === undefined) return reject(statusError(2, "empty answer", this.who));
          resolve(answer);
          if (again) this.#preopen(path, token);
        },
      };
      const stream =
        this.#preopened.take(path, token, handlers) ?? this.#request(path, token, limitMs, handlers, secret);
      this.#calls++;
      const unlink = onAbort(signal, () => {
        stream.close(constants.NGHTTP2_CANCEL);
        reject(signal.reason);
      });
      stream.end(frame(body));
    });
  }

  /** Messages both ways until either side ends it. */
  stream(path: string, token: string | undefined, handlers: StreamHandlers): GrpcStream {
    const request = this.#request(path, token, undefined, {
      message: (bytes) => handlers.message(bytes),
      ended: (error) => {
        if (--this.#streams === 0) this.#preopened.drop();
        handlers.ended(error);
      },
    });
    this.#streams++;
    // What is sent in one turn goes out in one write: a write takes far longer than the bytes in it.
    let unsent: Buffer[] = [];
    const flush = (): void => {
      const messages = unsent;
      unsent = [];
      const [only] = messages;
      if (request.closed || request.destroyed || only === undefined) return;
      request.write(messages.length === 1 ? only : Buffer.concat(messages));
    };
    return {
      send: (bytes) => {
        if (unsent.push(frame(bytes)) === 1) queueMicrotask(flush);
      },
      close: () => request.close(constants.NGHTTP2_CANCEL),
    };
  }

  #preopen(path: string, token: string | undefined): void {
    if (this.#opening !== undefined || this.#streams === 0 || this.#calls > 0) return;
    // Where few streams are allowed at once (some proxies), none is taken up before it is needed.
    if ((this.#session.remoteSettings.maxConcurrentStreams ?? Infinity) < MANY_STREAMS) return;
    this.#opening = this.#clock.after(PREOPEN_DELAY_MS, () => {
      this.#opening = undefined;
      if (!this.#alive || this.#streams === 0 || this.#calls > 0) return;
      try {
        this.#preopened.open(path, token);
      } catch {
        // the connection is gone: the next request reports it
      }
    });
  }

  #request(
    path: string,
    token: string | undefined,
    limitMs: number | undefined,
    handlers: StreamHandlers,
    secret = "",
  ): ClientHttp2Stream {
    if (this.#why !== undefined) throw this.#why;
    const headers: OutgoingHttpHeaders = {
      ":method": "POST",
      ":path": path,
      "content-type": "application/grpc",
      te: "trailers",
      // A member that has lost the cluster's leader refuses instead of keeping us waiting.
      hasleader: "true",
    };
    if (token !== undefined) headers["token"] = token;
    if (limitMs !== undefined)
      headers["grpc-timeout"] = `${Math.min(Math.max(1, Math.ceil(limitMs)), 99_999_999)}m`;
    let request: ClientHttp2Stream;
    try {
      request = this.#session.request(headers);
    } catch {
      // It is known to be broken a moment before it says so.
      this.end("the connection broke");
      throw this.#why!;
    }
    this.#listen(request, handlers, [token ?? "", secret]);
    return request;
  }

  #listen(request: ClientHttp2Stream, handlers: StreamHandlers, secrets: readonly string[]): void {
    const unframer = new Unframer();
    let failure: EtcdError | undefined;
    let finished = false; // the server said how it ended
    let messages = 0;
    let told = false;
    const end = (): void => {
      if (told) return;
      told = true;
      handlers.ended(failure);
    };
    const onHeaders = (headers: IncomingHttpHeaders): void => {
      this.#heard();
      const status = headers["grpc-status"];
      const http = headers[":status"];
      if (http !== undefined && Number(http) !== 200) failure = httpError(Number(http), this.who);
      if (status !== undefined) {
        finished = true;
        if (status !== "0")
          failure = statusError(Number(status), decodeMessage(headers["grpc-message"]), this.who, secrets);
        // The answer is complete; the stream's own end comes a little later.
        if (failure !== undefined || messages > 0) end();
      }
      // The server is done, we are not: the stream would stay half open forever.
      if ((finished || failure !== undefined) && !request.writableEnded)
        request.close(constants.NGHTTP2_CANCEL);
    };
    request.on("response", onHeaders);
    request.on("trailers", onHeaders);
    request.on("data", (chunk: Buffer) => {
      this.#heard();
      try {
        for (const message of unframer.push(chunk)) {
          messages++;
          handlers.message(message);
        }
      } catch (cause) {
        failure = unreadable(this.who, cause);
        request.close(constants.NGHTTP2_PROTOCOL_ERROR);
      }
    });
    request.on("error", () => {}); // "close" follows and is handled
    request.on("close", () => {
      this.#pings.closed();
      if (failure === undefined && !finished) failure = this.#why ?? this.#cutShort();
      end();
    });
    this.#pings.opened();
  }

  #cutShort(): EtcdError {
    return new EtcdError(
      "retriable",
      "unavailable",
      `etcd at ${this.who} broke off in the middle of an answer`,
    );
  }

  #heard(): void {
    this.heardAt = this.#clock.now();
    this.#pings.heard(this.heardAt);
  }
}
