/**
 * The telephone exchange: the sink that must not ring twice. It refuses the
 * token of a leader that has been succeeded, and a customer it has already
 * connected for the same call list.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fenceHandler, Gate, passOf } from "conclave/fencing";

export interface Call {
  readonly customer: string;
  /** The scheduled instant: together with the customer, the key that makes a repeat a repeat. */
  readonly list: number;
  readonly pid: number;
}

export interface Ring extends Call {
  readonly outcome: "connected" | "repeat" | "stale";
}

export class Exchange {
  readonly log: Ring[] = [];
  /** Told of each call before the caller is answered. What it does to the caller is the story. */
  incident: (ring: Ring) => void = () => {};
  readonly #gate = new Gate();
  readonly #server = createServer((request, response) => {
    response.once("finish", () => {
      // Refused by the fence: the handler never saw it.
      if (response.statusCode === 409)
        this.#note(JSON.parse(String(request.headers["x-call"])) as Call, "stale");
    });
    this.#connect(request, response);
  });
  readonly #connect = fenceHandler(this.#gate, (request, response) => {
    const call = JSON.parse(String(request.headers["x-call"])) as Call;
    if (passOf(request) === undefined) throw new Error("no call without a token");
    const repeat = this.log.some(
      (ring) => ring.outcome === "connected" && ring.customer === call.customer && ring.list === call.list,
    );
    this.#note(call, repeat ? "repeat" : "connected");
    response.end();
  });

  async open(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #note(call: Call, outcome: Ring["outcome"]): void {
    const ring = { ...call, outcome };
    this.log.push(ring);
    this.incident(ring);
  }
}
