/** The client for URLs: ioredis, an optional peer, loaded when a URL is opened. */
import { readFile } from "node:fs/promises";
import { ConclaveError, describe, invalid } from "../../kit/errors.js";
import type { Driver } from "./driver.js";
import { IoRedisDriver, isIoRedis } from "./ioredis.js";
import type { RedisAddress, RedisTlsFiles } from "./options.js";

/** Connects to nothing yet: the client is a template for the connections that the backend makes. */
export async function driverFor(address: RedisAddress): Promise<Driver> {
  const { Redis, Cluster } = await loadIoRedis(address.tls === undefined ? "redis" : "rediss");
  const { hosts, username, password, database, sentinel, sentinelPassword } = address;
  const tls = address.tls && (await readTls(address.tls));
  const common = {
    lazyConnect: true,
    connectionName: "conclave",
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(tls !== undefined && { tls }),
  };
  const client = address.cluster
    ? new Cluster([...hosts], { lazyConnect: true, redisOptions: common })
    : new Redis({
        ...common,
        db: database,
        ...(sentinel === undefined
          ? oneHost(hosts)
          : {
              sentinels: [...hosts],
              name: sentinel,
              ...(sentinelPassword !== undefined && { sentinelPassword }),
              ...(tls !== undefined && { enableTLSForSentinelMode: true, sentinelTLS: tls }),
            }),
      });
  if (!isIoRedis(client))
    throw new ConclaveError(
      "unsupported",
      "this version of ioredis is not supported: install version 5 or later",
    );
  return new IoRedisDriver(client);
}

function oneHost(hosts: RedisAddress["hosts"]): { host: string; port: number } {
  if (hosts.length === 1) return hosts[0]!;
  throw invalid(
    "the Redis URL names several hosts: add ?cluster=true if they form a cluster, or ?sentinel=<name of the primary> if they are Sentinels",
  );
}

async function loadIoRedis(scheme: string): Promise<Pick<typeof import("ioredis"), "Redis" | "Cluster">> {
  try {
    return await import("ioredis");
  } catch (error) {
    throw new ConclaveError(
      "unsupported",
      `${scheme}:// URLs need the package ioredis: npm install ioredis (${describe(error)})`,
      { cause: error },
    );
  }
}

async function readTls(files: RedisTlsFiles): Promise<Record<string, string>> {
  const read = async (what: string, path: string | undefined): Promise<string | undefined> => {
    try {
      return path === undefined ? undefined : await readFile(path, "utf8");
    } catch (error) {
      throw invalid(`the TLS file ${what} of the Redis URL cannot be read: ${describe(error)}`);
    }
  };
  const [ca, cert, key] = await Promise.all([
    read("ca", files.ca),
    read("cert", files.cert),
    read("key", files.key),
  ]);
  const { serverName: servername } = files;
  const all = { ca, cert, key, servername };
  return Object.fromEntries(
    Object.entries(all).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}
