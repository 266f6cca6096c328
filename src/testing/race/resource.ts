/**
 * A resource that checks tokens: it keeps the highest it has seen, for reads
 * and writes alike, and refuses lower ones. It holds one counter per election
 * and writes down, in its own order, what it accepted and what it refused.
 */
import { createServer, connect } from "node:net";
import type { Server, Socket } from "node:net";
import { eachLine } from "./lines.js";

interface Request {
  readonly id: number;
  readonly op: "read" | "write";
  readonly el: string;
  readonly inc: string;
  readonly token: string;
  readonly value?: number;
}

/** `value: null` = refused. */
interface Reply {
  readonly id: number;
  readonly value: number | null;
}

export class Resource implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #write: (event: object) => void;
  readonly #state = new Map<string, { max: bigint; value: number }>();

  private constructor(write: (event: object) => void) {
    this.#write = write;
    this.#server = createServer((socket) => this.#serve(socket));
  }

  static async listen(path: string, write: (event: object) => void): Promise<Resource> {
    const resource = new Resource(write);
    await new Promise<void>((resolve) => resource.#server.listen(path, resolve));
    return resource;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket));
    eachLine(socket, (line) => {
      const reply = this.#answer(JSON.parse(line) as Request);
      if (!socket.destroyed) socket.write(`${JSON.stringify(reply)}\n`);
    });
  }

  #answer(request: Request): Reply {
    const { id, op, el, inc } = request;
    const token = BigInt(request.token);
    const state = this.#state.get(el) ?? { max: -1n, value: 0 };
    const accepted = token >= state.max;
    const next = accepted && op === "write" ? request.value! : state.value;
    if (op === "write") {
      const log = { el, inc, token: `${token}`, max: `${state.max}`, value: request.value };
      this.#write({ ev: accepted ? "acc" : "rej", ...log });
    }
    if (accepted) this.#state.set(el, { max: token, value: next });
    return { id, value: accepted ? next : null };
  }
}

export class ResourceClient {
  readonly #socket: Socket;
  readonly #el: string;
  readonly #inc: string;
  readonly #waiting = new Map<number, (value: number | null) => void>();
  #id = 0;

  private constructor(socket: Socket, el: string, inc: string) {
    this.#socket = socket;
    this.#el = el;
    this.#inc = inc;
    eachLine(socket, (line) => {
      const { id, value } = JSON.parse(line) as Reply;
      this.#waiting.get(id)?.(value);
      this.#waiting.delete(id);
    });
    socket.on("close", () => this.#waiting.forEach((answer) => answer(null)));
  }

  static async connect(path: string, el: string, inc: string): Promise<ResourceClient> {
    const socket = connect(path);
    await new Promise<void>((resolve, reject) => socket.once("connect", resolve).once("error", reject));
    return new ResourceClient(socket, el, inc);
  }

  /** `null`: refused, because a newer leader has been here. */
  read(token: bigint): Promise<number | null> {
    return this.#ask("read", token);
  }

  async write(token: bigint, value: number): Promise<boolean> {
    return (await this.#ask("write", token, value)) !== null;
  }

  close(): void {
    this.#socket.destroy();
  }

  #ask(op: Request["op"], token: bigint, value?: number): Promise<number | null> {
    if (this.#socket.destroyed) return Promise.resolve(null);
    const id = ++this.#id;
    const request = { id, op, el: this.#el, inc: this.#inc, token: `${token}`, value };
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve);
      this.#socket.write(`${JSON.stringify(request)}\n`);
    });
  }
}
