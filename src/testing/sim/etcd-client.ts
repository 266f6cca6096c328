/**
 * The etcd room's narrow client, on the simulated etcd: what is tried here is
 * the backend that runs on the real one.
 */
import type {
  CallLimits,
  Comparison,
  EtcdClient,
  LeaseGrant,
  LeaseLife,
  Operation,
  Transaction,
  TransactionAnswer,
  WatchNotice,
  WatchRequest,
} from "../../backends/etcd/client.js";
import { EtcdError } from "../../backends/etcd/client/errors.js";
import type { Clock } from "../../core/clock.js";
import { describe } from "../../core/errors.js";
import { bounded, sleep } from "../../core/waiting.js";
import type { SimCompare, SimEtcd, SimOp, SimRange } from "./etcd-server.js";

const RETRY_MS = 50;

export class SimEtcdClient implements EtcdClient {
  readonly #clock: Clock;
  readonly #etcd: SimEtcd;
  readonly #closing = new AbortController();

  constructor(clock: Clock, etcd: SimEtcd) {
    this.#clock = clock;
    this.#etcd = etcd;
  }

  async transaction(transaction: Transaction, limits: CallLimits): Promise<TransactionAnswer> {
    const txn = {
      compare: transaction.when.map(comparison),
      success: transaction.then.map(operation),
      failure: transaction.otherwise.map(operation),
    };
    const { header, succeeded, ranges } = await this.#call("transaction", limits, (call) =>
      this.#etcd.txn(txn, call),
    );
    return { ...header, succeeded, results: ranges.map((kvs) => ({ kvs })) };
  }

  async leaseGrant(ttlSeconds: bigint, limits: CallLimits): Promise<LeaseGrant> {
    const { id, ttlSeconds: ttl } = await this.#call("grant", limits, (call) =>
      this.#etcd.grant(Number(ttlSeconds), call),
    );
    return { id, ttl: BigInt(ttl) };
  }

  async leaseKeepAlive(id: bigint, limits: CallLimits): Promise<LeaseLife> {
    const { header, ttlSeconds } = await this.#call("keep-alive", limits, (call) =>
      this.#etcd.keepAlive(id, call),
    );
    return { ...header, ttl: BigInt(ttlSeconds) };
  }

  async leaseRevoke(id: bigint, limits: CallLimits): Promise<void> {
    await this.#call("revoke", limits, (call) => this.#etcd.revoke(id, call));
  }

  watch(request: WatchRequest, sink: (notice: WatchNotice) => void): () => void {
    const stop = new AbortController();
    void this.#follow(request, sink, stop.signal);
    return () => stop.abort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
  }

  /** A stream that breaks is opened again, after what was seen. One that falls silent is not noticed here. */
  async #follow(
    request: WatchRequest,
    sink: (notice: WatchNotice) => void,
    stop: AbortSignal,
  ): Promise<void> {
    let next = request.startRevision;
    while (!stop.aborted && !this.#closing.signal.aborted) {
      const target = { key: request.key, prefix: request.rangeEnd !== undefined, fromRevision: next };
      await this.#etcd
        .watch(
          target,
          (events) => {
            const news = events.filter(
              ({ kv, type }) => kv.modRevision >= next && request.skip !== `${type}s`,
            );
            for (const { kv } of events) if (kv.modRevision >= next) next = kv.modRevision + 1n;
            if (news.length > 0 && !stop.aborted && !this.#closing.signal.aborted)
              sink({ kind: "events", events: news });
          },
          { signal: stop },
        )
        .catch(() => {});
      await sleep(this.#clock, RETRY_MS, stop);
    }
  }

  async #call<T>(
    what: string,
    limits: CallLimits,
    call: (call: { signal: AbortSignal }) => Promise<T>,
  ): Promise<T> {
    try {
      return await bounded(this.#clock, limits.limitMs, limits.signal, `etcd ${what}`, (signal) =>
        call({ signal }),
      );
    } catch (error) {
      if (describe(error).includes("lease not found"))
        throw new EtcdError("lost", "unavailable", describe(error), { cause: error });
      throw error;
    }
  }
}

function comparison({ target, key, rangeEnd, value }: Comparison): SimCompare {
  if (rangeEnd !== undefined) return { key, prefix: true };
  if (target === "lease") return { key, lease: value };
  return target === "create" ? { key, createRevision: value } : { key, modRevision: value };
}

function operation(op: Operation): SimOp {
  if (op.kind === "delete") return { delete: { key: op.key } };
  if (op.kind === "put")
    return { put: { key: op.key, value: op.value, ...(op.lease !== undefined && { lease: op.lease }) } };
  const range: SimRange = {
    key: op.key,
    prefix: op.rangeEnd !== undefined,
    order: op.sort === "newest-first" ? "descending" : "ascending",
    ...(op.limit !== undefined && { limit: op.limit }),
    ...(op.maxCreateRevision !== undefined && { maxCreateRevision: op.maxCreateRevision }),
  };
  return { range };
}
