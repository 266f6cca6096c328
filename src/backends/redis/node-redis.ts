/** node-redis (`redis`, `@redis/client`): createClient, createCluster and createSentinel. */
import { ConclaveError } from "../../kit/errors.js";
import type { Driver, Link, SubscriberEvents, SubscriberLink } from "./driver.js";
import { hasMethods, hostList, passwords, property } from "./driver.js";

const METHODS = ["sendCommand", "duplicate", "connect", "on", "subscribe", "unsubscribe"] as const;
type Client = Record<(typeof METHODS)[number], (...args: unknown[]) => unknown>;
type Kind = "client" | "cluster" | "sentinel";

export function isNodeRedis(client: unknown): client is Client {
  return hasMethods(client, ...METHODS) && typeof property(client, "isOpen") === "boolean";
}

function kindOf(client: Client): Kind {
  if ("masters" in client) return "cluster";
  return hasMethods(client, "acquire", "use") ? "sentinel" : "client";
}

export class NodeRedisDriver implements Driver {
  readonly keyPrefix = "";
  readonly database: number;
  readonly cluster: boolean;
  readonly secrets: readonly string[];
  readonly hosts: string | undefined;
  readonly #client: Client;
  readonly #kind: Kind;

  constructor(client: Client) {
    this.#client = client;
    this.#kind = kindOf(client);
    this.cluster = this.#kind === "cluster";
    const options = property(client, "options");
    const database = property(options, "database");
    this.database = typeof database === "number" ? database : 0;
    this.hosts = hostList(property(options, "socket"));
    this.secrets = passwords(property(options, "password"));
  }

  link(): Link {
    const client = this.#duplicate();
    return {
      ready: connected(client, () => {}),
      send: async (args, key) => send(client, this.#kind, args, key),
      nodes: () => nodes(client, this.#kind),
      end: () => end(client),
    };
  }

  subscriber(events: SubscriberEvents): SubscriberLink {
    const client = this.#duplicate();
    const hear = (text: unknown, channel: unknown): void => events.message(String(channel), String(text));
    return {
      ready: connected(client, () => events.broken()),
      subscribe: async (channel) => client.subscribe(channel, hear),
      unsubscribe: async (channel) => client.unsubscribe(channel, hear),
      // Only a single connection can be asked; those of a cluster and of Sentinel ping themselves or say that they broke.
      ping: async () => (hasMethods(client, "ping") && this.#kind === "client" ? client.ping() : undefined),
      end: () => end(client),
    };
  }

  #duplicate(): Client {
    const socket = property(this.#client, "options", "socket");
    const copy: unknown =
      this.#kind === "client"
        ? this.#client.duplicate({
            socket: { ...(typeof socket === "object" ? socket : {}), reconnectStrategy: false },
            disableOfflineQueue: true,
          })
        : this.#client.duplicate();
    if (isNodeRedis(copy)) return copy;
    throw new ConclaveError(
      "unsupported",
      "duplicate() of the Redis client did not return a client; hand in an ioredis, iovalkey or node-redis client",
    );
  }
}

async function send(
  client: Client,
  kind: Kind,
  args: readonly string[],
  key: string | undefined,
): Promise<unknown> {
  if (kind === "cluster") return client.sendCommand(key, false, [...args]);
  if (kind === "sentinel") return client.sendCommand(false, [...args]);
  return client.sendCommand([...args]);
}

async function nodes(client: Client, kind: Kind): Promise<((args: readonly string[]) => Promise<unknown>)[]> {
  if (kind !== "cluster" || !hasMethods(client, "nodeClient"))
    return [(args) => send(client, kind, args, undefined)];
  const masters = property(client, "masters");
  const clients: unknown[] = await Promise.all(
    (Array.isArray(masters) ? masters : []).map((node: unknown) => client.nodeClient(node)),
  );
  return clients
    .filter((node) => hasMethods(node, "sendCommand"))
    .map((node) => async (args) => node.sendCommand([...args]));
}

async function connected(client: Client, broken: () => void): Promise<void> {
  // Without a listener an error would end the process.
  client.on("error", broken);
  client.on("end", broken);
  await client.connect();
}

/** `destroy` since version 5, `disconnect` before. Either throws, or rejects, if there is nothing to end. */
function end(client: Client): void {
  const ended = async (): Promise<unknown> => {
    if (hasMethods(client, "destroy")) return client.destroy();
    return hasMethods(client, "disconnect") ? client.disconnect() : undefined;
  };
  void ended().catch(() => {});
}
