import type { BackendWithRecords } from "../../seam/backend.js";
import { EtcdBackend } from "./backend.js";
import type { EtcdClient } from "./client.js";
import { GrpcEtcdClient } from "./client/grpc-client.js";
import { clientOptions, type EtcdOptions, parseEtcdUrl, rootOf } from "./options.js";

export type { EtcdLayout } from "./backend.js";
export type {
  CallLimits,
  Comparison,
  EtcdClient,
  Header,
  KeyValue,
  LeaseGrant,
  LeaseLife,
  Operation,
  RangeAnswer,
  RangeRequest,
  Transaction,
  TransactionAnswer,
  WatchEvent,
  WatchNotice,
  WatchRequest,
} from "./client.js";
export { EtcdError } from "./client/errors.js";
export type { EtcdErrorKind } from "./client/errors.js";
export type { TlsFiles } from "./client/endpoint.js";
export { EtcdFence } from "./fence.js";
export type { EtcdActs, EtcdChange, EtcdFenceOptions } from "./fence.js";
export type { EtcdOptions } from "./options.js";

/** A client to be shared by several backends; who makes it closes it (`await using`). Nothing is sent before it is used. */
export function etcdClient(options: Omit<EtcdOptions, "client" | "prefix" | "layout"> = {}): EtcdClient {
  return new GrpcEtcdClient(clientOptions(options));
}

/** Elections on etcd. Nothing is sent before the first campaign: a server that is not there yet is not an error here. */
export function etcdBackend(options: EtcdOptions = {}): BackendWithRecords {
  return new EtcdBackend({
    client: options.client ?? etcdClient(options),
    ownsClient: options.client === undefined,
    prefix: rootOf(options.prefix),
    layout: options.layout,
    clock: options.clock,
  });
}

/**
 * Opens `etcd://h1:2379,h2:2379/optional/prefix?ca=…&cert=…&key=…&layout=key`
 * or `etcds://…`. A string, since several hosts with ports are no URL to Node.
 */
export function openEtcd(url: string | URL, options: EtcdOptions = {}): BackendWithRecords {
  return etcdBackend({ ...parseEtcdUrl(typeof url === "string" ? url : url.href), ...options });
}
