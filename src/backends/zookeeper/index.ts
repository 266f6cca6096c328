import type { BackendWithRecords } from "../../seam/backend.js";
import { ZooKeeperBackend } from "./backend.js";
import { WireZooKeeperClient } from "./client/wire-client.js";
import {
  clientOptions,
  layoutName,
  parseZooKeeperUrl,
  rootOf,
  tickOf,
  type ZooKeeperOptions,
} from "./options.js";

export type {
  CallLimits,
  Change,
  Created,
  CreateMode,
  FailedCheck,
  NodeData,
  SessionListener,
  Stat,
  ZooKeeperClient,
  ZooKeeperConnection,
  ZooKeeperSession,
} from "./client.js";
export type { TlsFiles } from "./client/endpoint.js";
export { ZooKeeperError } from "./client/errors.js";
export type { ZooKeeperErrorKind } from "./client/errors.js";
export type { ZooKeeperLayout } from "./layouts.js";
export type { ZooKeeperOptions } from "./options.js";

/** Elections on ZooKeeper. Nothing is sent before the first campaign: a server that is not there yet is not an error here. */
export function zookeeperBackend(options: ZooKeeperOptions = {}): BackendWithRecords {
  return new ZooKeeperBackend({
    client: options.client ?? new WireZooKeeperClient(clientOptions(options)),
    root: rootOf(options.chroot),
    layout: layoutName(options),
    tickMs: tickOf(options.tickMs),
    warn: options.warn ?? ((message) => process.emitWarning(message, { code: "CONCLAVE_ZOOKEEPER_TTL" })),
    clock: options.clock,
  });
}

/**
 * Opens `zookeeper://h1:2181,h2:2181/chroot?layout=curator-latch` or
 * `zookeepers://…`. A string, since several hosts with ports are no URL to Node.
 */
export function openZooKeeper(url: string | URL, options: ZooKeeperOptions = {}): BackendWithRecords {
  return zookeeperBackend({ ...parseZooKeeperUrl(typeof url === "string" ? url : url.href), ...options });
}
