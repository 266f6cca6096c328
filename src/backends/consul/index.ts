import type { BackendWithRecords } from "../../seam/backend.js";
import { ConsulBackend } from "./backend.js";
import type { ConsulClient } from "./client.js";
import { HttpConsulClient } from "./client/http-client.js";
import {
  checkLayout,
  checkNumbers,
  clientOptions,
  type ConsulOptions,
  parseConsulUrl,
  rootOf,
} from "./options.js";

export type {
  CallLimits,
  ConsulClient,
  HeldLock,
  KeyRange,
  KeyValue,
  Operation,
  ReadAnswer,
  ReadRequest,
  Refusal,
  SessionRequest,
  TransactionAnswer,
} from "./client.js";
export type { ConsulRequest, ConsulResponse, ConsulTlsFiles } from "./client/transport.js";
export type { ConsulLayout } from "./keys.js";
export type { ConsulOptions } from "./options.js";

/** A client to be shared by several backends; who makes it closes it (`await using`). Nothing is sent before it is used. */
export function consulClient(
  options: Omit<ConsulOptions, "client" | "prefix" | "layout" | "lockDelayMs" | "minTtlMs"> = {},
): ConsulClient {
  return new HttpConsulClient(clientOptions(options));
}

/** Elections on Consul. Nothing is sent before the first campaign: an agent that is not there yet is not an error here. */
export function consulBackend(options: ConsulOptions = {}): BackendWithRecords {
  checkNumbers(options);
  return new ConsulBackend({
    root: rootOf(options.prefix),
    layout: options.layout === undefined ? undefined : checkLayout(options.layout),
    client: options.client ?? consulClient(options),
    ownsClient: options.client === undefined,
    lockDelayMs: options.lockDelayMs,
    minTtlMs: options.minTtlMs,
    clock: options.clock,
  });
}

/** Opens `consul://host:8500/optional/prefix?dc=…` or `consuls://…`. */
export function openConsul(url: string | URL, options: ConsulOptions = {}): BackendWithRecords {
  return consulBackend({ ...parseConsulUrl(new URL(url)), ...options });
}
