/** ioredis and iovalkey: single servers, Sentinel and Cluster. */
import { ConclaveError } from "../../kit/errors.js";
import type { Driver, Link, SubscriberEvents, SubscriberLink } from "./driver.js";
import { hasMethods, hostList, passwords, property } from "./driver.js";

const METHODS = [
  "call",
  "duplicate",
  "connect",
  "disconnect",
  "on",
  "subscribe",
  "unsubscribe",
  "ping",
] as const;
type Client = Record<(typeof METHODS)[number], (...args: unknown[]) => unknown>;

export function isIoRedis(client: unknown): client is Client {
  return hasMethods(client, ...METHODS) && typeof property(client, "isCluster") === "boolean";
}

/**
 * Nothing is sent twice and nothing waits in a queue: a command that was not
 * answered is unknown, and the engine asks again. A connection that ends is not
 * made again by the client, but by the next command.
 */
const CONNECTION = {
  lazyConnect: true,
  retryStrategy: () => null,
  reconnectOnError: null,
  maxRetriesPerRequest: 0,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  autoResubscribe: false,
  enableAutoPipelining: false,
  enableReadyCheck: true,
  monitor: false,
  readOnly: false,
};

const CLUSTER = {
  lazyConnect: true,
  clusterRetryStrategy: () => null,
  enableOfflineQueue: false,
  enableAutoPipelining: false,
  scaleReads: "master",
  retryDelayOnFailover: 0,
  retryDelayOnClusterDown: 0,
};

export class IoRedisDriver implements Driver {
  readonly keyPrefix: string;
  readonly database: number;
  readonly cluster: boolean;
  readonly secrets: readonly string[];
  readonly hosts: string | undefined;
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
    this.cluster = property(client, "isCluster") === true;
    const options = property(client, "options");
    const prefix = property(options, "keyPrefix") ?? property(options, "redisOptions", "keyPrefix");
    this.keyPrefix = typeof prefix === "string" ? prefix : "";
    const database = property(options, "db");
    this.database = typeof database === "number" ? database : 0;
    const sentinels = property(options, "sentinels");
    const places = this.cluster ? property(client, "startupNodes") : (sentinels ?? [options]);
    this.hosts = Array.isArray(places) ? hostList(...(places as unknown[])) : undefined;
    this.secrets = passwords(
      property(options, "password"),
      property(options, "sentinelPassword"),
      property(options, "redisOptions", "password"),
    );
  }

  link(): Link {
    const client = this.#duplicate({});
    const cluster = this.cluster;
    return {
      ready: connected(client, () => {}),
      send: async ([command = "", ...args]) => client.call(command, ...args),
      nodes: async () => {
        if (!cluster || !hasMethods(client, "nodes"))
          return [async ([command = "", ...args]) => client.call(command, ...args)];
        const nodes: unknown = client.nodes("master");
        return (Array.isArray(nodes) ? nodes : [])
          .filter((node: unknown) => hasMethods(node, "call"))
          .map(
            (node) =>
              async ([command = "", ...args]: readonly string[]) =>
                node.call(command, ...args),
          );
      },
      end: () => void client.disconnect(),
    };
  }

  subscriber(events: SubscriberEvents): SubscriberLink {
    // Channels are not keys, but some versions would put the prefix before them.
    const client = this.#duplicate({ keyPrefix: "" });
    client.on("message", (channel: unknown, text: unknown) => events.message(String(channel), String(text)));
    return {
      ready: connected(client, () => events.broken()),
      subscribe: async (channel) => client.subscribe(channel),
      unsubscribe: async (channel) => client.unsubscribe(channel),
      ping: async () => client.ping(),
      end: () => void client.disconnect(),
    };
  }

  #duplicate(extra: Record<string, unknown>): Client {
    const copy = this.cluster
      ? this.#client.duplicate([], {
          ...CLUSTER,
          ...extra,
          redisOptions: { ...clusterConnection(), ...extra },
        })
      : this.#client.duplicate({ ...CONNECTION, ...extra });
    if (isIoRedis(copy)) return copy;
    throw new ConclaveError(
      "unsupported",
      "duplicate() of the Redis client did not return a client; hand in an ioredis, iovalkey or node-redis client",
    );
  }
}

/** A cluster makes the connections to its nodes itself, when they are needed. */
function clusterConnection(): Record<string, unknown> {
  const { lazyConnect: _, enableOfflineQueue: __, ...rest } = CONNECTION;
  return rest;
}

/** The reason of a failed connection is told by an event; the rejection only says that it is closed. */
async function connected(client: Client, broken: () => void): Promise<void> {
  let reason: unknown;
  client.on("error", (error: unknown) => {
    reason = error;
    broken();
  });
  client.on("end", broken);
  try {
    await client.connect();
  } catch (error) {
    throw reasonOf(reason) ?? error;
  }
}

/** What a cluster reports names no cause; the causes are beside it. */
function reasonOf(error: unknown): unknown {
  return property(error, "lastNodeError") ?? error;
}
