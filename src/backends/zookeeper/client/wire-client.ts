/** Opens sessions on the servers of one ensemble. */
import { shuffled } from "./shuffle.js";
import { systemClock } from "../../../kit/clock.js";
import { limited } from "../../../kit/wait.js";
import type { Clock } from "../../../seam/clock.js";
import type { CallLimits, ZooKeeperClient, ZooKeeperSession } from "../client.js";
import type { WireConnection } from "./connection.js";
import type { Endpoint, TlsFiles } from "./endpoint.js";
import { HandshakeRefused, ZooKeeperError } from "./errors.js";
import type { Acl } from "./messages.js";
import { SeenZxid } from "./seen-zxid.js";
import { dialLimitMs, openConnection, WireSession } from "./session.js";

export interface WireClientOptions {
  readonly endpoints: readonly Endpoint[];
  readonly tls?: TlsFiles | undefined;
  /** `user:password`. */
  readonly digest?: string | undefined;
  readonly acl?: Acl | undefined;
  readonly largestFrame?: number | undefined;
  readonly clock?: Clock | undefined;
}

const NO_PASSWORD = Buffer.alloc(16);

export class WireZooKeeperClient implements ZooKeeperClient {
  readonly #options: WireClientOptions;
  readonly #clock: Clock;
  readonly #endpoints: readonly Endpoint[];
  readonly #seen: SeenZxid;
  readonly #sessions = new Set<WireSession>();
  #closed = false;

  constructor(options: WireClientOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    // Not all clients to the first server.
    this.#endpoints = shuffled(options.endpoints, this.#clock);
    this.#seen = new SeenZxid(this.#clock);
  }

  async openSession(timeoutMs: number, { signal, limitMs }: CallLimits): Promise<ZooKeeperSession> {
    if (this.#closed) throw new ZooKeeperError("permanent", "state", "this ZooKeeper client is closed");
    return limited(this.#clock, limitMs, signal, "opening a ZooKeeper session", async (stop) => {
      let failure: unknown;
      for (let i = 0; i < this.#endpoints.length; i++) {
        try {
          return await this.#open(i, timeoutMs, {
            signal: stop,
            limitMs: dialLimitMs(timeoutMs, this.#endpoints.length),
          });
        } catch (error) {
          if (stop.aborted) throw stop.reason;
          if (error instanceof HandshakeRefused) this.#seen.refused(this.#endpoints.length, 2 * timeoutMs);
          failure = moreTelling(failure, error);
        }
      }
      throw failure;
    });
  }

  /** Sessions that are still open run out at the server. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    for (const session of this.#sessions) session.abandon();
  }

  async #open(index: number, timeoutMs: number, { signal, limitMs }: CallLimits): Promise<ZooKeeperSession> {
    const endpoint = this.#endpoints[index]!;
    const { tls, digest, acl = "open", largestFrame } = this.#options;
    const options = { clock: this.#clock, tls, digest, acl, largestFrame, seen: this.#seen };
    const handshake = {
      lastZxid: this.#seen.zxid,
      timeoutMs: Math.ceil(timeoutMs),
      sessionId: 0n,
      password: NO_PASSWORD,
    };
    let session: WireSession | undefined;
    const ended = (connection: WireConnection): void => session?.disconnected(connection);
    const { connection, response } = await limited(
      this.#clock,
      limitMs,
      signal,
      "connecting to ZooKeeper",
      (stop) => openConnection(endpoint, options, handshake, ended, stop),
    );
    if (response.timeoutMs <= 0 || response.sessionId === 0n) {
      connection.drop("no session was granted");
      throw new ZooKeeperError("retriable", "unavailable", "ZooKeeper granted no session");
    }
    session = new WireSession(
      {
        ...options,
        endpoints: this.#endpoints,
        ended: (over) => this.#sessions.delete(over),
      },
      response,
      index + 1,
    );
    this.#sessions.add(session);
    session.use(connection);
    return session;
  }
}

/** What will not pass by itself says more than that some server could not be reached. */
function moreTelling(before: unknown, error: unknown): unknown {
  return before instanceof ZooKeeperError && before.kind === "permanent" ? before : error;
}
