/**
 * Which Redis the tests run: the one on the PATH, or the one in the directory that CONCLAVE_REDIS_BIN names
 * (valkey-server is taken there if there is no redis-server).
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";

type Command = "redis-server" | "redis-sentinel" | "redis-cli";

export function redisCommand(name: Command): string {
  const directory = process.env["CONCLAVE_REDIS_BIN"] ?? "";
  if (directory === "") return name;
  const own = join(directory, name);
  return existsSync(own) ? own : join(directory, name.replace("redis", "valkey"));
}

/** Whether it is there. One that was asked for by CONCLAVE_REDIS_BIN must be: its tests are not skipped. */
export function hasRedis(): boolean {
  const there = spawnSync(redisCommand("redis-server"), ["--version"], { stdio: "ignore" }).status === 0;
  if (!there && redisCommand("redis-server") !== "redis-server")
    throw new Error(`CONCLAVE_REDIS_BIN: ${redisCommand("redis-server")} cannot be run`);
  return there;
}
