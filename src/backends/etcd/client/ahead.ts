/**
 * A request stream opened ahead of its request. Most of the time between waking
 * and asking goes into making the stream, here and in the server; a candidate
 * that waits has that time beforehand. At most one such stream is open, and it
 * carries no request: unless it is used, the server has nothing to carry out.
 */
import { type ClientHttp2Stream, constants } from "node:http2";
import type { StreamHandlers } from "./connection.js";
import type { EtcdError } from "./errors.js";

/** Hands on to whoever takes the stream. */
class Relay implements StreamHandlers {
  target: StreamHandlers | undefined;
  readonly #unused: () => void;

  constructor(unused: () => void) {
    this.#unused = unused;
  }

  message(bytes: Uint8Array): void {
    this.target?.message(bytes);
  }

  ended(error: EtcdError | undefined): void {
    if (this.target === undefined) this.#unused();
    else this.target.ended(error);
  }
}

interface Opened {
  readonly path: string;
  readonly token: string | undefined;
  readonly request: ClientHttp2Stream;
  readonly relay: Relay;
}

type Open = (path: string, token: string | undefined, handlers: StreamHandlers) => ClientHttp2Stream;

export class Ahead {
  readonly #start: Open;
  #opened: Opened | undefined;

  constructor(start: Open) {
    this.#start = start;
  }

  /** The stream, if it is for this path and these credentials and still stands. */
  take(path: string, token: string | undefined, handlers: StreamHandlers): ClientHttp2Stream | undefined {
    const opened = this.#opened;
    if (opened === undefined || opened.path !== path) return undefined;
    if (opened.token !== token || opened.request.closed || opened.request.destroyed) {
      this.drop();
      return undefined;
    }
    this.#opened = undefined;
    opened.relay.target = handlers;
    return opened.request;
  }

  open(path: string, token: string | undefined): void {
    if (this.#opened !== undefined) return;
    const relay = new Relay(() => {
      if (this.#opened?.relay === relay) this.#opened = undefined;
    });
    const request = this.#start(path, token, relay);
    this.#opened = { path, token, relay, request };
    // An answer to no question (a proxy that gave up waiting) must not be taken for one to the next question.
    request.once("response", () => {
      if (this.#opened?.relay === relay) this.drop();
    });
  }

  drop(): void {
    this.#opened?.request.close(constants.NGHTTP2_CANCEL);
    this.#opened = undefined;
  }
}
