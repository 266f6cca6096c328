/** Which client was handed in. */
import { invalid } from "../../kit/errors.js";
import type { Driver } from "./driver.js";
import { IoRedisDriver, isIoRedis } from "./ioredis.js";
import { isNodeRedis, NodeRedisDriver } from "./node-redis.js";

/**
 * A client of yours, recognised by its methods: ioredis or iovalkey (`new Redis`,
 * with Sentinels too, `new Cluster`), or node-redis (`createClient`,
 * `createCluster`, `createSentinel`).
 */
export interface RedisClient {
  duplicate(...args: never[]): unknown;
  connect(...args: never[]): unknown;
  subscribe(...args: never[]): unknown;
}

export function driverOf(client: unknown): Driver {
  if (isIoRedis(client)) return new IoRedisDriver(client);
  if (isNodeRedis(client)) return new NodeRedisDriver(client);
  throw invalid(
    "client is not a Redis client that is known here: hand in one of ioredis, iovalkey or node-redis (version 4 or later), or use openRedis(url)",
  );
}
