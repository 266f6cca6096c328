/**
 * A TCP proxy that can be cut, deafened, slowed and turned into a black hole:
 * the network between a backend and a server, in the hands of a test. Bytes are
 * passed as they are, so TLS and HTTP/2 go through it unseen.
 */
import type { AddressInfo, Server, Socket } from "node:net";
import { connect, createServer } from "node:net";
import type { WireFaults } from "./faults.js";

/** A proxy that listens on a port of its own, and the faults it can make. */
export interface FaultProxy extends Required<WireFaults>, AsyncDisposable {
  readonly host: string;
  readonly port: number;
  /** Breaks every connection, as a restarted server does. New ones are welcome. */
  reset(): void;
}

/** The server behind the proxy. */
export interface FaultProxyTarget {
  readonly host?: string;
  readonly port: number;
}

interface State {
  mode: "healthy" | "cut" | "deaf" | "hole";
  /** Answers (runs of bytes from the server) that still pass although the proxy is deaf. */
  answersLeft: number;
  delayMs: number;
}

class Link {
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #state: State;
  /** Bytes on their way, per direction: order is kept whatever the delays. */
  #lastAt = 0;
  /** Lost bytes: TCP has no holes, so this link can only be broken when the fault is over. */
  spoiled = false;
  /** In a black hole for good: silent, and neither side learns of the other's end. */
  #dead = false;

  constructor(client: Socket, target: FaultProxyTarget, state: State) {
    this.#client = client;
    this.#state = state;
    this.#server = connect({ host: target.host ?? "127.0.0.1", port: target.port });
    this.#dead = state.mode === "hole";
    for (const socket of [this.#client, this.#server]) {
      socket.setNoDelay(true);
      socket.on("error", () => this.#ended(socket));
      socket.on("close", () => this.#ended(socket));
    }
    this.#client.on("data", (bytes) => this.#request(bytes));
    this.#server.on("data", (bytes) => this.#answer(bytes));
  }

  destroy(): void {
    this.#client.destroy();
    this.#server.destroy();
  }

  /** From now on this connection is silent for good. */
  die(): void {
    this.#dead = true;
  }

  #request(bytes: Buffer): void {
    if (this.#dead) return;
    if (this.#state.mode === "cut") this.spoiled = true;
    else this.#send(bytes);
  }

  #answer(bytes: Buffer): void {
    const state = this.#state;
    if (this.#dead) return;
    if (state.mode === "deaf" && state.answersLeft > 0) state.answersLeft--;
    else if (state.mode !== "healthy") return void (this.spoiled = true);
    if (!this.#client.destroyed) this.#client.write(bytes);
  }

  #ended(socket: Socket): void {
    // Packets of a server that ended do not come out of a black hole: the client is not told.
    if (this.#dead && socket === this.#server) this.#server.destroy();
    else this.destroy();
  }

  #send(bytes: Buffer): void {
    const at = Math.max(performance.now() + this.#state.delayMs, this.#lastAt);
    this.#lastAt = at;
    const write = (): void => void (this.#server.destroyed || this.#server.write(bytes));
    const wait = at - performance.now();
    if (wait <= 0) write();
    else setTimeout(write, wait);
  }
}

/** Starts a proxy in front of a server. Close it after the tests. */
export async function faultProxy(target: FaultProxyTarget): Promise<FaultProxy> {
  const state: State = { mode: "healthy", answersLeft: 0, delayMs: 0 };
  const links = new Set<Link>();
  const server: Server = createServer((client) => {
    const link = new Link(client, target, state);
    links.add(link);
    client.on("close", () => links.delete(link));
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  const reset = (): void => links.forEach((link) => link.destroy());
  const set = (mode: State["mode"], answersLeft = 0): void =>
    void Object.assign(state, { mode, answersLeft });
  return {
    host: "127.0.0.1",
    port,
    reset,
    cut: () => set("cut"),
    deafen: ({ after = 0 } = {}) => set("deaf", after),
    slow: (delayMs) => void (state.delayMs = delayMs),
    blackHole: () => {
      set("hole");
      links.forEach((link) => link.die());
    },
    heal: () => {
      set("healthy");
      state.delayMs = 0;
      // A link that lost bytes is no link any more. One that died in a black hole stays, and says nothing.
      for (const link of links) if (link.spoiled) link.destroy();
    },
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        reset();
      }),
  };
}
