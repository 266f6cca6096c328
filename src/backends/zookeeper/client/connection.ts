/**
 * One connection to one server: handshake, authentication, requests in a queue
 * that is answered in order, watches that fire once. It ends for good, and then
 * every request without an answer fails, and every watch wakes whoever waits.
 */
import type { Socket } from "node:net";
import { readClocks } from "../../../kit/clock.js";
import type { Stop } from "../../../kit/stop.js";
import { limited } from "../../../kit/wait.js";
import type { Clock, Reading } from "../../../seam/clock.js";
import type {
  CallLimits,
  Change,
  Created,
  CreateMode,
  FailedCheck,
  NodeData,
  Stat,
  ZooKeeperConnection,
} from "../client.js";
import { authority, type Endpoint, type TlsFiles } from "./endpoint.js";
import {
  connectionLost,
  ERRNO,
  handshakeRefused,
  nullIfNoNode,
  serverError,
  unreadable,
  ZooKeeperError,
} from "./errors.js";
import { FrameReader } from "./framing.js";
import { JuteError, JuteReader } from "./jute.js";
import * as messages from "./messages.js";
import { OP, XID } from "./messages.js";
import { dial } from "./socket.js";
import { RequestQueue } from "./request-queue.js";
import { SilenceGuard } from "./silence-guard.js";
import { Watches } from "./watches.js";

/** What all connections of a client have in common. */
export interface ConnectionOptions {
  readonly clock: Clock;
  readonly tls: TlsFiles | undefined;
  /** `user:password` for the digest scheme. */
  readonly digest: string | undefined;
  readonly acl: messages.Acl;
  readonly largestFrame?: number | undefined;
}

/** Told of a connection. Must not throw. */
export interface ConnectionListener {
  /** The newest transaction that the server has told us of. */
  zxid(zxid: bigint): void;
  /** See {@link ZooKeeperConnection.history}. */
  history(): object;
  closed(): void;
}

export class WireConnection implements ZooKeeperConnection {
  readonly asked: Reading;
  readonly endpoint: Endpoint;
  readonly #options: ConnectionOptions;
  readonly #listener: ConnectionListener;
  readonly #socket: Socket;
  readonly #frames: FrameReader;
  readonly #watches = new Watches();
  readonly #who: string;
  readonly #requests = new RequestQueue();
  #handshake: { resolve(response: messages.ConnectResponse): void; reject(error: unknown): void } | undefined;
  #authenticated: { resolve(): void; reject(error: unknown): void } | undefined;
  readonly #silence: SilenceGuard;
  #closed: ZooKeeperError | undefined;

  private constructor(
    endpoint: Endpoint,
    socket: Socket,
    options: ConnectionOptions,
    listener: ConnectionListener,
  ) {
    this.endpoint = endpoint;
    this.#who = authority(endpoint);
    this.#socket = socket;
    this.#options = options;
    this.#listener = listener;
    this.#frames = new FrameReader(options.largestFrame);
    this.asked = readClocks(options.clock);
    this.#silence = new SilenceGuard(options.clock, (why) => this.drop(why));
    socket.on("data", (chunk: Buffer) => this.#read(chunk));
    socket.on("error", (error) => this.#close(connectionLost(this.#who, error.message, error)));
    socket.on("close", () => this.#close(connectionLost(this.#who, "the server closed it")));
  }

  /** Connects, asks for a session and authenticates. A response with a timeout of zero is returned as it is: that session is over. */
  static async open(
    endpoint: Endpoint,
    options: ConnectionOptions,
    handshake: messages.ConnectRequest,
    listener: ConnectionListener,
    stop: Stop,
  ): Promise<{ connection: WireConnection; response: messages.ConnectResponse }> {
    const socket = await dial(endpoint, options.tls, stop);
    const connection = new WireConnection(endpoint, socket, options, listener);
    const abort = (): void => connection.drop("it was given up");
    stop.addEventListener("abort", abort);
    try {
      const response = await connection.#shakeHands(handshake);
      if (response.timeoutMs > 0) {
        if (options.digest !== undefined) await connection.#authenticate(options.digest);
        connection.#silence.guard(response.timeoutMs);
      }
      return { connection, response };
    } catch (error) {
      connection.drop("the handshake failed");
      throw stop.aborted ? stop.reason : error;
    } finally {
      stop.removeEventListener("abort", abort);
    }
  }

  get history(): object {
    return this.#listener.history();
  }

  get closed(): boolean {
    return this.#closed !== undefined;
  }

  create(path: string, data: string, mode: CreateMode, limits: CallLimits): Promise<Created> {
    const { acl } = this.#options;
    const encode = (xid: number): Buffer => messages.createRequest(xid, path, data, mode, acl);
    return this.#ask("create", encode, messages.created, limits);
  }

  async remove(path: string, limits: CallLimits, version?: number): Promise<boolean> {
    const removed = this.#ask(
      "delete",
      (xid) => messages.deleteRequest(xid, path, version),
      () => true,
      limits,
    );
    return (await nullIfNoNode(removed)) !== null;
  }

  async getData(path: string, limits: CallLimits, wake?: () => void): Promise<NodeData | null> {
    return nullIfNoNode(this.#look("getData", OP.getData, path, messages.nodeData, limits, wake));
  }

  exists(path: string, limits: CallLimits, wake?: () => void): Promise<Stat | null> {
    const ask = this.#look("exists", OP.exists, path, messages.stat, limits, wake, ERRNO.noNode);
    return nullIfNoNode(ask);
  }

  async getChildren(path: string, limits: CallLimits, wake?: () => void): Promise<readonly string[] | null> {
    return nullIfNoNode(this.#look("getChildren", OP.getChildren, path, messages.children, limits, wake));
  }

  setData(path: string, data: string, version: number, limits: CallLimits): Promise<Stat> {
    const encode = (xid: number): Buffer => messages.setDataRequest(xid, path, data, version);
    return this.#ask("setData", encode, messages.stat, limits);
  }

  check(paths: readonly string[], limits: CallLimits): Promise<FailedCheck | undefined> {
    const encode = (xid: number): Buffer => messages.checkRequest(xid, paths);
    return this.#ask("multi", encode, (reader) => messages.checkResults(reader, paths.length), limits);
  }

  commit(changes: readonly Change[], limits: CallLimits): Promise<FailedCheck | undefined> {
    const { acl } = this.#options;
    const encode = (xid: number): Buffer => messages.commitRequest(xid, changes, acl);
    return this.#ask("multi", encode, (reader) => messages.commitResults(reader, changes), limits);
  }

  ping(limits: CallLimits): Promise<void> {
    return limited(this.#options.clock, limits.limitMs, limits.signal, `a ping of ${this.#who}`, () => {
      return new Promise((resolve, reject) => {
        if (this.#closed !== undefined) throw this.#closed;
        this.#requests.addPing(() => resolve(), reject);
        this.#socket.write(messages.pingRequest());
      });
    });
  }

  /** Ends the session. The server answers, then closes the connection. */
  closeSession(limits: CallLimits): Promise<void> {
    return this.#ask("closeSession", messages.closeRequest, () => undefined, limits);
  }

  drop(why: string): void {
    this.#close(connectionLost(this.#who, why));
  }

  #look<T>(
    what: string,
    type: typeof OP.exists | typeof OP.getData | typeof OP.getChildren,
    path: string,
    decode: (reader: JuteReader) => T,
    limits: CallLimits,
    wake: (() => void) | undefined,
    alsoOn?: number,
  ): Promise<T> {
    const encode = (xid: number): Buffer => messages.readRequest(xid, type, path, wake !== undefined);
    if (wake === undefined) return this.#ask(what, encode, decode, limits);
    // Events come in order with the answers: whoever is told of one has had its answer before.
    const armed = (): void => this.#watches.add(type === OP.getChildren ? "children" : "data", path, wake);
    return this.#ask(what, encode, decode, limits, (errno) => {
      if (errno === ERRNO.ok || errno === alsoOn) armed();
    });
  }

  #ask<T>(
    what: string,
    encode: (xid: number) => Buffer,
    decode: (reader: JuteReader) => T,
    { signal, limitMs }: CallLimits,
    answered?: (errno: number) => void,
  ): Promise<T> {
    const named = `${what} on ZooKeeper at ${this.#who}`;
    return limited(this.#options.clock, limitMs, signal, named, () => {
      return new Promise<T>((resolve, reject) => {
        if (this.#closed !== undefined) throw this.#closed;
        const take = (reader: JuteReader): void => {
          answered?.(ERRNO.ok);
          resolve(decode(reader));
        };
        const fail = (error: unknown): void => {
          if (error instanceof ZooKeeperError && error.errno !== undefined) answered?.(error.errno);
          reject(error);
        };
        this.#socket.write(encode(this.#requests.add(what, take, fail)));
      });
    });
  }

  #shakeHands(handshake: messages.ConnectRequest): Promise<messages.ConnectResponse> {
    return new Promise((resolve, reject) => {
      if (this.#closed !== undefined) return reject(this.#closed);
      this.#handshake = { resolve, reject };
      this.#socket.write(messages.connectRequest(handshake));
    });
  }

  #authenticate(digest: string): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#closed !== undefined) return reject(this.#closed);
      this.#authenticated = { resolve, reject };
      this.#socket.write(messages.authRequest("digest", digest));
    });
  }

  #read(chunk: Buffer): void {
    this.#silence.heard();
    try {
      for (const frame of this.#frames.push(chunk)) {
        if (this.#closed !== undefined) return;
        if (this.#handshake !== undefined) this.#greeted(messages.connectResponse(frame));
        else this.#answered(frame);
      }
    } catch (error) {
      if (!(error instanceof JuteError)) throw error;
      this.#close(unreadable(this.#who, error.message));
    }
  }

  #greeted(response: messages.ConnectResponse): void {
    const handshake = this.#handshake;
    this.#handshake = undefined;
    handshake?.resolve(response);
  }

  #answered(frame: Buffer): void {
    const reader = new JuteReader(frame);
    const { xid, zxid, errno } = messages.replyHeader(reader);
    if (zxid > 0n) this.#listener.zxid(zxid);
    if (xid === XID.event) return this.#watches.fire(messages.watchEvent(reader));
    if (xid === XID.auth) return this.#authAnswered(errno);
    const error = this.#requests.answered(xid, errno, reader, this.#who);
    if (errno === ERRNO.sessionMoved || errno === ERRNO.notReadOnly || errno === ERRNO.sessionExpired)
      if (error !== undefined) this.#close(error);
  }

  #authAnswered(errno: number): void {
    if (errno === ERRNO.ok) return this.#authenticated?.resolve();
    const error = serverError(errno, "auth", this.#who);
    this.#authenticated?.reject(error);
    this.#close(error);
  }

  #close(error: ZooKeeperError): void {
    if (this.#closed !== undefined) return;
    this.#closed = error;
    this.#silence.close();
    this.#socket.destroy();
    this.#handshake?.reject(handshakeRefused(this.#who, error));
    this.#authenticated?.reject(error);
    this.#requests.fail(error);
    this.#listener.closed();
    this.#watches.end();
  }
}
