/** A voter's door: takes connections, checks who is there, answers questions. What a peer can cost is bounded before and after it has shown the key. */
import { createServer } from "node:net";
import type { Server, Socket } from "node:net";
import { ConclaveError, describe } from "../../../kit/errors.js";
import { StopSource } from "../../../kit/stop.js";
import type { Stop } from "../../../kit/stop.js";
import { printable } from "../../../kit/printable.js";
import type { Clock, Timer } from "../../../seam/clock.js";
import type { Address } from "../address.js";
import { FRAME, FrameReader } from "./frames.js";
import { Callee } from "./handshake.js";
import type { Identity, Keyed } from "./handshake.js";

const TICK_MS = 1_000;
const GREETING_TICKS = 4;
const SILENT_TICKS = 15;
const SAID_TICKS = 60;
/** Connections that have not shown the key, and those that have. */
const MOST_STRANGERS = 64;
const MOST_CONNECTIONS = 2_000;
/** Questions of one connection that are not answered yet. */
const MOST_OPEN = 20_000;
const MOST_UNSENT = 8 * 1024 * 1024;

interface Connection {
  readonly socket: Socket;
  readonly callee: Callee;
  readonly reader: FrameReader;
  readonly gone: StopSource;
  keyed?: Keyed;
  open: number;
  ticks: number;
}

export interface Doorkeeping {
  readonly own: Identity;
  readonly voters: ReadonlySet<string>;
  readonly clock: Clock;
  /** Answers a question of somebody who has shown the key; `undefined`: cut the connection. `gone`: it has ended. */
  handle(body: Buffer, gone: Stop): Promise<Buffer | undefined> | undefined;
  log(line: string): void;
}

export class Door {
  readonly #parts: Doorkeeping;
  readonly #server: Server;
  readonly #connections = new Set<Connection>();
  #tick: Timer | undefined;
  #strangers = 0;
  /** Refusals that were logged, and for how long they are not logged again. */
  readonly #said = new Map<string, number>();

  constructor(parts: Doorkeeping) {
    this.#parts = parts;
    this.#server = createServer({ noDelay: true }, (socket) => this.#accept(socket));
    parts.own.lives?.onNewer((name, life) => {
      for (const { socket, keyed } of this.#connections)
        if (keyed?.peer === name && keyed.life !== life) socket.destroy();
    });
  }

  async listen({ host, port }: Address): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", (error) =>
        reject(
          new ConclaveError(
            "unavailable",
            `this voter cannot listen on ${host}:${port}: ${describe(error)}`,
            { cause: error },
          ),
        ),
      );
      this.#server.listen(port, host, resolve);
    });
    this.#server.on("error", () => {});
    this.#tick = this.#parts.clock.after(TICK_MS, () => this.#sweep());
  }

  async close(): Promise<void> {
    this.#tick?.cancel();
    for (const { socket } of this.#connections) socket.destroy();
    if (!this.#server.listening) return;
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #accept(socket: Socket): void {
    const { own, voters, clock } = this.#parts;
    socket.on("error", () => {});
    if (this.#strangers >= MOST_STRANGERS || this.#connections.size >= MOST_CONNECTIONS)
      return void socket.destroy();
    const callee = new Callee(own, voters, clock);
    const connection: Connection = {
      socket,
      callee,
      reader: new FrameReader(),
      gone: new StopSource(),
      open: 0,
      ticks: 0,
    };
    this.#connections.add(connection);
    this.#strangers++;
    socket.on("close", () => {
      this.#connections.delete(connection);
      connection.gone.stop();
      if (connection.keyed === undefined) this.#strangers--;
    });
    socket.on("data", (bytes) => {
      try {
        for (const frame of connection.reader.push(bytes)) {
          if (socket.destroyed) return;
          if (connection.keyed === undefined) this.#greet(connection, frame);
          else this.#take(connection, connection.keyed, frame);
        }
      } catch {
        // Bytes of a stranger are no news; whoever has the key sends no such bytes.
        socket.destroy();
      }
    });
  }

  #greet(connection: Connection, frame: Buffer): void {
    const step = connection.callee.take(frame);
    if (step.send !== undefined) connection.socket.write(step.send);
    if ("refused" in step) {
      this.#refused(printable(step.refused));
      connection.socket.end();
    } else if ("keyed" in step) {
      connection.keyed = step.keyed;
      connection.ticks = 0;
      this.#strangers--;
    }
  }

  /** Whoever is refused comes back every second. */
  #refused(why: string): void {
    if (!this.#said.has(why)) this.#parts.log(why);
    this.#said.set(why, SAID_TICKS);
  }

  #take(connection: Connection, keyed: Keyed, frame: Buffer): void {
    const { type, body } = keyed.in.open(frame);
    connection.ticks = 0;
    if (type === FRAME.ping) return this.#write(connection, keyed, FRAME.pong, Buffer.alloc(0));
    if (type !== FRAME.request || body.length < 4) return;
    if (++connection.open > MOST_OPEN) return void connection.socket.destroy();
    const id = Buffer.from(body.subarray(0, 4));
    const answering = this.#parts.handle(body.subarray(4), connection.gone);
    if (answering === undefined) return void connection.socket.destroy();
    answering.then(
      (answer) => {
        connection.open--;
        if (answer === undefined || connection.socket.destroyed) return;
        this.#write(connection, keyed, FRAME.answer, Buffer.concat([id, answer]));
      },
      () => {
        connection.open--; // not answered: whoever asked does not know
      },
    );
  }

  #write({ socket }: Connection, keyed: Keyed, type: number, body: Buffer): void {
    if (socket.writableLength > MOST_UNSENT) return void socket.destroy();
    if (socket.writableCorked === 0) {
      socket.cork();
      queueMicrotask(() => socket.uncork());
    }
    socket.write(keyed.out.close(type, body));
  }

  #sweep(): void {
    for (const { socket, keyed, ticks } of this.#connections)
      if (ticks >= (keyed === undefined ? GREETING_TICKS : SILENT_TICKS)) socket.destroy();
    for (const connection of this.#connections) connection.ticks++;
    for (const [why, ticks] of this.#said)
      if (ticks > 0) this.#said.set(why, ticks - 1);
      else this.#said.delete(why);
    this.#tick = this.#parts.clock.after(TICK_MS, () => this.#sweep());
  }
}
