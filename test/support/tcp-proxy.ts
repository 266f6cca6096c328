/**
 * A TCP proxy that misbehaves on command: delays each way, cuts, or swallows
 * everything without a word (no FIN, no RST), as a broken switch does. New
 * connections meet the same fate as those that are open.
 */
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
  /** Bytes swallowed while the hole was open; they are lost, as on a wire. */
  doomed: boolean;
}

export class TcpProxy {
  readonly #server: Server;
  readonly #pairs = new Set<Pair>();
  #swallowing = false;
  #refusing = false;
  #delayMs = { toServer: 0, toClient: 0 };

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(target: { host?: string; port: number }): Promise<TcpProxy> {
    const server = createServer();
    const proxy = new TcpProxy(server);
    server.on("connection", (client) => proxy.#join(client, target.host ?? "127.0.0.1", target.port));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get endpoint(): string {
    return `127.0.0.1:${this.port}`;
  }

  get connections(): number {
    return this.#pairs.size;
  }

  delay(ms: { toServer?: number; toClient?: number }): void {
    this.#delayMs = { toServer: ms.toServer ?? 0, toClient: ms.toClient ?? 0 };
  }

  /** Resets every open connection; new ones are let through. */
  cut(): void {
    for (const pair of this.#pairs) {
      pair.client.resetAndDestroy();
      pair.server.resetAndDestroy();
    }
  }

  /** Accepts nothing and resets what is open, until {@link heal}. */
  refuse(): void {
    this.#refusing = true;
    this.cut();
  }

  /** Swallows everything in both directions; nobody is told. */
  blackHole(): void {
    this.#swallowing = true;
    for (const pair of this.#pairs) pair.doomed = true;
  }

  /**
   * New connections work again. Those that were open in the hole stay dead: what
   * they sent is lost, and TCP on our side has acknowledged it already.
   */
  heal(): void {
    this.#swallowing = false;
    this.#refusing = false;
    this.#delayMs = { toServer: 0, toClient: 0 };
  }

  async close(): Promise<void> {
    for (const pair of this.#pairs) {
      pair.client.destroy();
      pair.server.destroy();
    }
    this.#server.close();
    await once(this.#server, "close");
  }

  #join(client: Socket, host: string, port: number): void {
    if (this.#refusing) {
      client.resetAndDestroy();
      return;
    }
    const server = connect(port, host);
    const pair: Pair = { client, server, doomed: this.#swallowing };
    this.#pairs.add(pair);
    client.setNoDelay(true);
    server.setNoDelay(true);
    this.#pipe(pair, client, server, () => this.#delayMs.toServer);
    this.#pipe(pair, server, client, () => this.#delayMs.toClient);
  }

  #pipe(pair: Pair, from: Socket, to: Socket, delay: () => number): void {
    const later = (act: () => void): void => {
      const ms = delay();
      if (ms > 0) setTimeout(act, ms);
      else act();
    };
    from.on("data", (chunk) => {
      if (pair.doomed) return;
      later(() => {
        if (!pair.doomed && !to.destroyed) to.write(chunk);
      });
    });
    from.on("error", () => {});
    from.on("end", () => {
      if (!pair.doomed) later(() => to.end());
    });
    from.on("close", () => {
      // In the hole not even an end gets through; both sides go when the test ends.
      if (pair.doomed && from === pair.client) pair.server.destroy();
      if (!pair.doomed) later(() => to.destroy());
      if (pair.client.destroyed && pair.server.destroyed) this.#pairs.delete(pair);
    });
  }
}
