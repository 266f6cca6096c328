/** Servers of the stores whose leaders are killed, each for one test. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { onTestFinished } from "vitest";
import { ConsulServer, hasConsul } from "../support/consul-server.js";
import { EtcdServer, hasEtcd } from "../support/etcd-server.js";
import { hasPostgres, PostgresServer } from "../support/postgres-server.js";
import { KEY, RaftCluster } from "../support/raft-cluster.js";
import { hasRedis, RedisServer } from "../support/redis-server.js";
import { hasZooKeeper, ZooKeeperServer } from "../support/zookeeper-server.js";

export interface KilledStore {
  readonly name: string;
  /** Its longest ttl, if it is shorter than a minute. */
  readonly ttl?: string;
  /** URL of a store of this test's own. */
  open(): Promise<string>;
}

async function directory(name: string): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), `conclave-will-${name}-`));
  onTestFinished(() => rm(path, { recursive: true, force: true, maxRetries: 5 }));
  return path;
}

async function started<S extends { stop(): Promise<unknown> }>(starting: Promise<S>): Promise<S> {
  const server = await starting;
  onTestFinished(async () => void (await server.stop()));
  return server;
}

/** A process that is not installed here is reported by scripts/stores-report.mjs. */
export const stores: readonly KilledStore[] = [
  { name: "file", open: async () => pathToFileURL(await directory("file")).href },
  ...(hasEtcd()
    ? [
        {
          name: "etcd",
          open: async () => `etcd://${(await started(EtcdServer.start())).endpoints.join(",")}`,
        },
      ]
    : []),
  ...(hasRedis()
    ? [
        {
          name: "redis",
          // The server has just been started; nobody led before.
          open: async () =>
            `${(await started(RedisServer.start({ password: "hunter2" }))).url}?quarantine=false`,
        },
      ]
    : []),
  ...(hasPostgres()
    ? [{ name: "postgres", open: async () => (await started(PostgresServer.start())).url() }]
    : []),
  ...(hasConsul()
    ? [{ name: "consul", open: async () => `consul://${(await started(ConsulServer.start())).address}/will` }]
    : []),
  ...(hasZooKeeper()
    ? [
        {
          name: "zookeeper",
          ttl: "10s", // twenty ticks are the longest session
          open: async () => {
            const server = await started(ZooKeeperServer.start());
            return `zookeeper://${server.hosts[0]}?tick=${server.tickMs}ms`;
          },
        },
      ]
    : []),
  {
    name: "raft",
    open: async () => {
      const cluster = await RaftCluster.start();
      onTestFinished(() => cluster.stop());
      const keyFile = join(await directory("raft"), "key");
      await writeFile(keyFile, KEY, { mode: 0o600 });
      return `raft://${cluster.list}?key-file=${encodeURIComponent(keyFile)}`;
    },
  },
];
