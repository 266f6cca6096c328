/** One server of each store that this machine has, with the URL by which processes of their own open it. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { source, startServer } from "../kubernetes/support/server.js";
import { ConsulServer, hasConsul } from "./consul-server.js";
import { EtcdServer, hasEtcd } from "./etcd-server.js";
import { hasPostgres, PostgresServer } from "./postgres-server.js";
import { KEY, RaftCluster } from "./raft-cluster.js";
import { hasRedis, RedisServer } from "./redis-server.js";
import { hasZooKeeper, ZooKeeperServer } from "./zookeeper-server.js";

export interface StartedStore {
  readonly url: string;
  stop(): Promise<unknown>;
}

export interface StoreServer {
  readonly name: string;
  /** Its longest ttl, if it is shorter than a minute. */
  readonly longestTtlMs?: number;
  start(): Promise<StartedStore>;
}

async function directory(name: string): Promise<{ path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), `conclave-${name}-`));
  return { path, remove: () => rm(path, { recursive: true, force: true, maxRetries: 5 }) };
}

async function started<S extends { stop(): Promise<unknown> }>(
  starting: Promise<S>,
  url: (server: S) => string,
): Promise<StartedStore> {
  const server = await starting;
  return { url: url(server), stop: () => server.stop() };
}

async function kubernetes(): Promise<StartedStore> {
  const server = await startServer();
  const url = new URL("kubernetes:///default");
  url.searchParams.set("kubeconfig", server.admin);
  return { url: url.href, stop: async () => server.stop() };
}

async function raft(): Promise<StartedStore> {
  const [cluster, { path, remove }] = await Promise.all([RaftCluster.start(), directory("raft-key")]);
  const keyFile = join(path, "key");
  await writeFile(keyFile, KEY, { mode: 0o600 });
  const stop = async (): Promise<void> => {
    await cluster.stop();
    await remove();
  };
  return { url: `raft://${cluster.list}?key-file=${encodeURIComponent(keyFile)}`, stop };
}

const servers: readonly (StoreServer & { readonly here: boolean })[] = [
  {
    name: "file",
    here: true,
    start: async () => {
      const { path, remove } = await directory("file");
      return { url: pathToFileURL(path).href, stop: remove };
    },
  },
  {
    name: "etcd",
    here: hasEtcd(),
    start: () => started(EtcdServer.start(), ({ endpoints }) => `etcd://${endpoints.join(",")}`),
  },
  {
    name: "redis",
    here: hasRedis(),
    // The server has just been started; nobody led before.
    start: () => started(RedisServer.start({ password: "hunter2" }), ({ url }) => `${url}?quarantine=false`),
  },
  {
    name: "postgres",
    here: hasPostgres(),
    start: () => started(PostgresServer.start(), (server) => server.url()),
  },
  {
    name: "consul",
    here: hasConsul(),
    start: () => started(ConsulServer.start(), ({ address }) => `consul://${address}/conclave`),
  },
  {
    name: "zookeeper",
    here: hasZooKeeper(),
    longestTtlMs: 10_000, // twenty ticks are the longest session
    start: () =>
      started(ZooKeeperServer.start(), ({ hosts, tickMs }) => `zookeeper://${hosts[0]}?tick=${tickMs}ms`),
  },
  { name: "kubernetes", here: source !== undefined, start: kubernetes },
  { name: "raft", here: true, start: raft },
];

/** A store that is not installed here is reported by scripts/stores-report.mjs. */
export const storeServers: readonly StoreServer[] = servers.filter(({ here }) => here);
