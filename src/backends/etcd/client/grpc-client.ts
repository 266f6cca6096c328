/**
 * The etcd client of this library: gRPC on one HTTP/2 connection, several
 * endpoints, tokens renewed, watches resumed. Single requests are never sent
 * twice, except after an answer that says they were not carried out.
 */
import { systemClock } from "../../../kit/clock.js";
import { type Clock } from "../../../seam/clock.js";
import type { Stop } from "../../../kit/stop.js";
import { limited, throwIfStopped } from "../../../kit/wait.js";
import type {
  CallLimits,
  EtcdClient,
  KeyValue,
  LeaseGrant,
  LeaseLife,
  RangeRequest,
  Transaction,
  TransactionAnswer,
  WatchNotice,
  WatchRequest,
} from "../client.js";
import { Channel } from "./channel.js";
import type { Connection, UnaryRequest } from "./connection.js";
import type { Endpoint, TlsFiles } from "./endpoint.js";
import { EtcdError, isMemberCutOff, isStaleToken, unreadable } from "./errors.js";
import { CallSlots } from "./call-slots.js";
import {
  decodeLeaseGrant,
  decodeLeaseLife,
  decodeRange,
  decodeStatus,
  decodeTransaction,
  encodeDelete,
  encodeLeaseGrant,
  encodeLeaseId,
  encodePut,
  encodeRange,
  encodeTransaction,
  type MemberStatus,
  methods,
} from "./messages.js";
import { type Credentials, Tokens } from "./tokens.js";
import { Watches } from "./watches.js";

export interface EtcdClientOptions {
  readonly endpoints: readonly Endpoint[];
  /** `undefined`: plain text. */
  readonly tls?: TlsFiles | undefined;
  readonly credentials?: Credentials | undefined;
  readonly dialTimeoutMs?: number | undefined;
  readonly clock?: Clock | undefined;
}

const DIAL_TIMEOUT_MS = 5_000;
/** More calls would only queue up inside the connection, where their time limit does not apply. */
const CALLS_AT_ONCE = 128;
/** Shorter timeouts never close the shared connection: others use it too, and pings check it. */
const MIN_LIMIT_TO_CLOSE_MS = 100;

/** For calls of which only the end is of interest. */
const nothing = (): void => {};

export class GrpcEtcdClient implements EtcdClient {
  readonly #clock: Clock;
  readonly #channel: Channel;
  readonly #tokens: Tokens;
  readonly #watches: Watches;
  readonly #slots = new CallSlots(CALLS_AT_ONCE);

  constructor(options: EtcdClientOptions) {
    this.#clock = options.clock ?? systemClock;
    this.#channel = new Channel({
      endpoints: options.endpoints,
      tls: options.tls,
      dialTimeoutMs: options.dialTimeoutMs ?? DIAL_TIMEOUT_MS,
      clock: this.#clock,
    });
    this.#tokens = new Tokens(options.credentials, this.#clock);
    this.#watches = new Watches(
      {
        open: async (handlers) => {
          const connection = await this.#channel.ready();
          const token = await this.#tokens.token(connection);
          return { stream: connection.stream(methods.watch, token, handlers), who: connection.who, token };
        },
        invalidate: (token) => {
          this.#tokens.invalidate(token);
          return this.#tokens.needed;
        },
      },
      this.#clock,
    );
  }

  async range(request: RangeRequest, limits: CallLimits): Promise<readonly KeyValue[]> {
    const { kvs } = await this.#call("range", methods.range, encodeRange(request), limits, decodeRange);
    return kvs;
  }

  async put(key: string, value: string, lease: bigint | undefined, limits: CallLimits): Promise<void> {
    return this.#call("put", methods.put, encodePut(key, value, lease), limits, nothing);
  }

  async delete(key: string, rangeEnd: string | undefined, limits: CallLimits): Promise<void> {
    return this.#call("delete", methods.deleteRange, encodeDelete(key, rangeEnd), limits, nothing);
  }

  async transaction(transaction: Transaction, limits: CallLimits): Promise<TransactionAnswer> {
    const body = encodeTransaction(transaction);
    return this.#call("transaction", methods.txn, body, limits, (answer, connection) => ({
      ...decodeTransaction(answer),
      connection,
    }));
  }

  async leaseGrant(ttlSeconds: bigint, limits: CallLimits): Promise<LeaseGrant> {
    const body = encodeLeaseGrant(ttlSeconds);
    return this.#urgent("lease grant", methods.leaseGrant, body, limits, decodeLeaseGrant);
  }

  async leaseKeepAlive(id: bigint, limits: CallLimits): Promise<LeaseLife> {
    // A stream of its own for each question: its answer cannot be mistaken for another's.
    const body = encodeLeaseId(id);
    return this.#urgent("keep-alive", methods.leaseKeepAlive, body, limits, decodeLeaseLife);
  }

  async leaseTimeToLive(id: bigint, limits: CallLimits): Promise<LeaseLife> {
    const body = encodeLeaseId(id);
    return this.#urgent("lease time-to-live", methods.leaseTimeToLive, body, limits, decodeLeaseLife);
  }

  async leaseRevoke(id: bigint, limits: CallLimits): Promise<void> {
    try {
      await this.#urgent("lease revoke", methods.leaseRevoke, encodeLeaseId(id), limits, nothing);
    } catch (error) {
      if (!(error instanceof EtcdError) || error.kind !== "lost") throw error;
    }
  }

  async status(limits: CallLimits): Promise<MemberStatus> {
    return this.#urgent("status", methods.status, new Uint8Array(), limits, decodeStatus);
  }

  watch(request: WatchRequest, sink: (notice: WatchNotice) => void): () => void {
    return this.#watches.add(request, sink);
  }

  /** Asks the watch stream for a sign of life. */
  askProgress(): void {
    this.#watches.askProgress();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#watches.close();
    this.#channel.close();
  }

  /** Waits for its turn; the time limit counts from then. */
  async #call<T>(
    what: string,
    path: string,
    body: Uint8Array,
    limits: CallLimits,
    decode: (answer: Uint8Array, connection: Connection | undefined) => T,
  ): Promise<T> {
    if (limits.urgent === true) return this.#urgent(what, path, body, limits, decode);
    throwIfStopped(limits.signal);
    if (!this.#slots.tryEnter()) await this.#slots.enter(limits.signal);
    try {
      return await this.#urgent(what, path, body, limits, decode);
    } finally {
      this.#slots.leave();
    }
  }

  async #urgent<T>(
    what: string,
    path: string,
    body: Uint8Array,
    { signal, limitMs }: CallLimits,
    decode: (answer: Uint8Array, connection: Connection | undefined) => T,
  ): Promise<T> {
    const sentAt = this.#clock.now();
    let used: Connection | undefined;
    const ask = (stop: Stop): Promise<Uint8Array> => {
      const request = { path, body, limitMs, signal: stop, again: path === methods.txn };
      used = this.#channel.current;
      // With a connection and without credentials it is sent at once, without an extra turn of the event loop.
      if (used !== undefined && !this.#tokens.needed) return used.unary(request, undefined);
      return this.#ask(request, (connection) => {
        used = connection;
      });
    };
    try {
      const answer = await limited(this.#clock, limitMs, signal, `etcd ${what}`, ask);
      try {
        return decode(answer, used);
      } catch (cause) {
        throw unreadable(used?.who, cause);
      }
    } catch (error) {
      this.#checkConnection(used, error, sentAt, limitMs);
      throw error;
    }
  }

  async #ask(request: UnaryRequest, uses: (connection: Connection) => void): Promise<Uint8Array> {
    const connection = await this.#channel.ready();
    uses(connection);
    const token = await this.#tokens.token(connection);
    throwIfStopped(request.signal);
    try {
      return await connection.unary(request, token);
    } catch (error) {
      if (!this.#tokens.needed || !isStaleToken(error)) throw error;
      this.#tokens.invalidate(token);
      const newer = await this.#tokens.token(connection);
      return connection.unary(request, newer);
    }
  }

  /** Moves on to another endpoint when this one is silent, or has lost the others. */
  #checkConnection(
    connection: Connection | undefined,
    error: unknown,
    sentAt: number,
    limitMs: number,
  ): void {
    if (connection === undefined) return;
    // Whether the caller or the time limit ended the call: nothing was received for that long.
    const waited = limitMs >= MIN_LIMIT_TO_CLOSE_MS && this.#clock.now() - sentAt >= 0.9 * limitMs;
    if (waited && connection.heardAt <= sentAt) connection.end("a request went unanswered");
    else if (this.#channel.many && isMemberCutOff(error)) connection.end("it has lost the cluster's leader");
  }
}
