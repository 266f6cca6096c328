/**
 * The telephone exchange: the sink that must not ring twice. It refuses the
 * token of a leader that has been succeeded, and a customer it has already
 * connected for the same list. On its other line, for callers without Conclave,
 * it does what it is told.
 */
import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { fenceHandler, Gate, passOf } from "../../fencing/index.js";
import type { Ring, CallResult } from "./model.js";
import type { Call } from "./wire.js";
import { CALL_HEADER, parseCall } from "./wire.js";

/** Longer than anybody is frozen: its next call comes on the connection it had. */
const KEEP_ALIVE_MS = 120_000;

export class Exchange {
  readonly log: Ring[] = [];
  /** A list begins. Told before the caller is answered, as is the next: what is done to the caller is the story. */
  begins: (call: Call) => void = () => {};
  rings: (ring: Ring) => void = () => {};
  /** Nobody else on this machine may ring here: they would have to know the way. */
  readonly #secret = randomBytes(18).toString("base64url");
  readonly #gate = new Gate();
  readonly #fenced = fenceHandler(this.#gate, (request, response) => this.#connect(request, response));
  readonly #server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (request, response) => {
    if (request.url === `/${this.#secret}/plain`) return this.#connect(request, response);
    if (request.url !== `/${this.#secret}/`) return void response.writeHead(404).end();
    response.once("finish", () => {
      // Refused by the fence: the handler never saw it.
      if (response.statusCode === 409) this.#note(request, "stale");
    });
    this.#fenced(request, response);
  });

  async open(): Promise<string> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject).listen(0, "127.0.0.1", resolve);
    });
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/${this.#secret}/`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #connect(request: IncomingMessage, response: ServerResponse): void {
    const call = parseCall(request.headers[CALL_HEADER]);
    if (call === null) return void response.writeHead(400).end();
    if (call.customer === null) this.begins(call);
    else this.#note(request, passOf(request) !== undefined && this.#knows(call) ? "repeat" : "connected");
    response.end();
  }

  #knows({ customer, list }: Call): boolean {
    return this.log.some(
      (ring) => ring.outcome === "connected" && ring.customer === customer && ring.list === list,
    );
  }

  #note(request: IncomingMessage, outcome: CallResult): void {
    const call = parseCall(request.headers[CALL_HEADER]);
    if (call === null || call.customer === null) return;
    const token = request.headers["fencing-token"];
    const { customer, list, by } = call;
    const ring = { customer, list, by, token: typeof token === "string" ? token : null, outcome };
    this.log.push(ring);
    this.rings(ring);
  }
}
