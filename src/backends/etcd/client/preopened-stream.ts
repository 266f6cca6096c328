/**
 * A request stream that is opened before there is a request. Most of the time
 * between a wake and the request that follows goes into creating the stream; a
 * waiting candidate can do that in advance. At most one such stream is open, and
 * it carries no data: until it is used, the server has nothing to carry out.
 */
import { type ClientHttp2Stream, constants } from "node:http2";
import type { StreamHandlers } from "./connection.js";
import type { EtcdError } from "./errors.js";

/** Passes events on to the request that takes the stream. */
class HandlerProxy implements StreamHandlers {
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
  readonly proxy: HandlerProxy;
}

type Open = (path: string, token: string | undefined, handlers: StreamHandlers) => ClientHttp2Stream;

export class PreopenedStream {
  readonly #start: Open;
  #opened: Opened | undefined;

  constructor(start: Open) {
    this.#start = start;
  }

  /** The stream, if it is for this path and these credentials and still open. */
  take(path: string, token: string | undefined, handlers: StreamHandlers): ClientHttp2Stream | undefined {
    const opened = this.#opened;
    if (opened === undefined || opened.path !== path) return undefined;
    if (opened.token !== token || opened.request.closed || opened.request.destroyed) {
      this.drop();
      return undefined;
    }
    this.#opened = undefined;
    opened.proxy.target = handlers;
    return opened.request;
  }

  open(path: string, token: string | undefined): void {
    if (this.#opened !== undefined) return;
    const proxy = new HandlerProxy(() => {
      if (this.#opened?.proxy === proxy) this.#opened = undefined;
    });
    const request = this.#start(path, token, proxy);
    this.#opened = { path, token, proxy, request };
    // An answer without a request (from a proxy that timed out) must not be taken for the answer to the next request.
    request.once("response", () => {
      if (this.#opened?.proxy === proxy) this.drop();
    });
  }

  drop(): void {
    this.#opened?.request.close(constants.NGHTTP2_CANCEL);
    this.#opened = undefined;
  }
}
