/**
 * The open connections of an HTTP server. When the limit is reached a new client
 * replaces the one that has been idle longest, so that sockets that never ask
 * anything cannot keep out those that do. A client that takes no bytes is
 * dropped by time: how much the kernel buffers for it is not known here.
 */
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Clock, Timer } from "../seam/clock.js";

const CHECK_EVERY_MS = 1000;
/**
 * Checks in a row without a byte taken. Counted, not measured: after a pause of
 * this process the first check is late, and the sockets have not been served yet.
 */
const MOST_STALLED_CHECKS = 5;
/** A refused client has this long to read why. */
const LINGER_MS = 1000;

/**
 * Requests of one connection that wait for their turn. Node reads as many as a
 * chunk holds before it does anything else, so a client that sends thousands in
 * a row would keep the process from renewing.
 */
const MOST_PIPELINED = 16;

interface Connection {
  /** Responses that are still being produced. */
  readonly producing: Set<ServerResponse>;
  /** Responses that are not sent yet. */
  unsent: number;
  /** Bytes the kernel has taken, at the last check. */
  taken: number;
  stalledChecks: number;
}

export class Connections {
  readonly #most: number;
  readonly #clock: Clock;
  readonly #open = new Map<Socket, Connection>();
  /** Those for which nothing is being produced, the longest idle first. */
  readonly #idle = new Set<Socket>();
  #checking: Timer | undefined;

  constructor(most: number, clock: Clock) {
    this.#most = most;
    this.#clock = clock;
  }

  /** A new connection. May close another, or this one. */
  add(socket: Socket): void {
    if (this.#open.size >= this.#most) {
      const [longestIdle] = this.#idle;
      if (longestIdle === undefined) return void socket.resetAndDestroy();
      this.#drop(longestIdle);
    }
    const connection: Connection = { producing: new Set(), unsent: 0, taken: 0, stalledChecks: 0 };
    this.#open.set(socket, connection);
    socket.once("close", () => this.#forget(socket));
    this.#afterFirstRead(() => {
      if (connection.producing.size === 0 && this.#open.has(socket)) this.#idle.add(socket);
    });
    this.#checking ??= this.#clock.after(CHECK_EVERY_MS, () => this.#check());
  }

  /** A request has arrived. Until its response is produced the connection is not idle. `false`: it is not to be served. */
  serving(socket: Socket, response: ServerResponse): boolean {
    const connection = this.#open.get(socket);
    if (connection === undefined) return false;
    if (connection.unsent >= MOST_PIPELINED) {
      this.#drop(socket);
      return false;
    }
    connection.unsent++;
    response.once("close", () => connection.unsent--);
    connection.producing.add(response);
    this.#idle.delete(socket);
    const produced = (): void => {
      connection.producing.delete(response);
      if (connection.producing.size === 0 && this.#open.has(socket)) this.#idle.add(socket);
    };
    response.once("prefinish", produced);
    response.once("close", produced);
    return true;
  }

  /** Sends a last answer and closes, also if the client never does: a half-closed socket keeps its descriptor. */
  refuse(socket: Socket, answer: string): void {
    // A client that sent nothing waits for nothing.
    if (socket.bytesRead === 0 || !socket.writable) return void socket.resetAndDestroy();
    socket.end(answer);
    socket.resume();
    const timer = this.#clock.after(LINGER_MS, () => socket.resetAndDestroy());
    socket.once("end", () => socket.destroySoon());
    socket.once("close", () => timer.cancel());
  }

  close(): void {
    for (const socket of this.#open.keys()) socket.destroy();
  }

  /** What has arrived by now is read in the next turn of the event loop; a client that asked at once is not idle. */
  #afterFirstRead(then: () => void): void {
    setImmediate(() => setImmediate(then));
  }

  #drop(socket: Socket): void {
    // At once, not with its "close" event: the next connection may come before that.
    this.#forget(socket);
    // A reset: a close would leave the other end to a client that may never answer it.
    socket.resetAndDestroy();
  }

  #forget(socket: Socket): void {
    this.#open.delete(socket);
    this.#idle.delete(socket);
    if (this.#open.size > 0) return;
    this.#checking?.cancel();
    this.#checking = undefined;
  }

  #check(): void {
    for (const [socket, connection] of this.#open) {
      const taken = socket.bytesWritten - socket.writableLength;
      const stalled = socket.writableLength > 0 && taken === connection.taken;
      connection.taken = taken;
      connection.stalledChecks = stalled ? connection.stalledChecks + 1 : 0;
      if (connection.stalledChecks >= MOST_STALLED_CHECKS) this.#drop(socket);
    }
    this.#checking =
      this.#open.size === 0 ? undefined : this.#clock.after(CHECK_EVERY_MS, () => this.#check());
  }
}
