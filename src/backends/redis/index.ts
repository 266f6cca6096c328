/** Elections on Redis and Valkey, by best effort: what that means is in docs/backends/redis.md. */
import type { BackendWithRecords } from "../../seam/backend.js";
import { systemClock } from "../../kit/clock.js";
import { redisBackendOn } from "./backend.js";
import { driverFor } from "./connect.js";
import type { Driver } from "./driver.js";
import type { RedisClient } from "./drivers.js";
import { driverOf } from "./drivers.js";
import type { RedisOptions } from "./options.js";
import { checkLayout, parseRedisUrl } from "./options.js";

export { GUARANTEES } from "./backend.js";
export type { RedisClient } from "./drivers.js";
export { RedisFence } from "./fence.js";
export type { RedisActs, RedisFencedScript, RedisFenceOptions } from "./fence.js";
export type { RedisLayout, RedisOptions } from "./options.js";

/** What {@link redisBackend} takes. */
export interface RedisBackendOptions extends RedisOptions {
  /**
   * Where Redis is and how to get in. No command is sent on it and it is never
   * closed: the backend makes two connections of its own by `duplicate()`. It need not be connected.
   */
  readonly client: RedisClient;
}

/** Elections on the Redis of a client of yours. Nothing is sent before the first campaign. */
export function redisBackend({ client, ...options }: RedisBackendOptions): BackendWithRecords {
  return backendOn(driverOf(client), options);
}

/**
 * Opens `redis://user:password@host:6379/0` or `rediss://…`, through ioredis;
 * `?sentinel=name` and `?cluster=true` with several hosts. Options go before
 * what the URL says.
 */
export async function openRedis(url: string | URL, options: RedisOptions = {}): Promise<BackendWithRecords> {
  const address = parseRedisUrl(typeof url === "string" ? url : url.href);
  return backendOn(await driverFor(address), { ...address.options, ...options });
}

function backendOn(driver: Driver, options: RedisOptions): BackendWithRecords {
  const layout = checkLayout(options.layout) ?? "hash";
  const { clock = systemClock, prefix, quarantine = true } = options;
  return redisBackendOn({ driver, clock, layout, prefix, quarantine });
}
