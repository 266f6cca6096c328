/**
 * A TCP proxy that can be cut, deafened and slowed: the network between a
 * backend and a server, in the hands of a test. Bytes are passed as they are,
 * so TLS and HTTP/2 go through it unseen.
 */
import type { AddressInfo, Server, Socket } from "node:net";
import { connect, createServer } from "node:net";
import type { Faults } from "./faults.js";

export interface FaultProxy extends Required<Faults>, AsyncDisposable {
  readonly host: string;
  readonly port: number;
  /** Breaks every connection, as a restarted server does. New ones are welcome. */
  reset(): void;
}

export interface FaultProxyTarget {
  readonly host?: string;
  readonly port: number;
}

type Mode = "healthy" | "cut" | "deaf";

class Link {
  readonly #client: Socket;
  readonly #server: Socket;
  /** Bytes on their way, per direction: order is kept whatever the delays. */
  #lastAt = 0;

  constructor(client: Socket, target: FaultProxyTarget, state: { mode: Mode; delayMs: number }) {
    this.#client = client;
    this.#server = connect({ host: target.host ?? "127.0.0.1", port: target.port });
    for (const socket of [this.#client, this.#server]) {
      socket.setNoDelay(true);
      socket.on("error", () => this.destroy());
      socket.on("close", () => this.destroy());
    }
    this.#client.on("data", (bytes) => {
      // What is lost is not sent later: TCP has no holes, so this link can only be broken when it heals.
      if (state.mode === "cut") return this.#spoil();
      this.#send(bytes, state.delayMs);
    });
    this.#server.on("data", (bytes) => {
      if (state.mode !== "healthy") return this.#spoil();
      if (!this.#client.destroyed) this.#client.write(bytes);
    });
  }

  spoiled = false;

  destroy(): void {
    this.#client.destroy();
    this.#server.destroy();
  }

  #spoil(): void {
    this.spoiled = true;
  }

  #send(bytes: Buffer, delayMs: number): void {
    const at = Math.max(performance.now() + delayMs, this.#lastAt);
    this.#lastAt = at;
    const write = (): void => void (this.#server.destroyed || this.#server.write(bytes));
    const wait = at - performance.now();
    if (wait <= 0) write();
    else setTimeout(write, wait);
  }
}

export async function faultProxy(target: FaultProxyTarget): Promise<FaultProxy> {
  const state: { mode: Mode; delayMs: number } = { mode: "healthy", delayMs: 0 };
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
  return {
    host: "127.0.0.1",
    port,
    reset,
    cut: () => void (state.mode = "cut"),
    deafen: () => void (state.mode = "deaf"),
    slow: (delayMs) => void (state.delayMs = delayMs),
    heal: () => {
      state.mode = "healthy";
      state.delayMs = 0;
      // A link that lost bytes is no link any more.
      for (const link of links) if (link.spoiled) link.destroy();
    },
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        reset();
      }),
  };
}
