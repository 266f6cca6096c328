/** Several Redis servers for tests: a primary with replicas and Sentinels, and a cluster. */
import { execFile, spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { redisCommand } from "./redis-command.js";
import { freePorts } from "./free-ports.js";
import { RedisServer } from "./redis-server.js";
import { until } from "./until.js";

const run = promisify(execFile);
const NAME = "main";

/** A replica of a server, perhaps reached by another port than its own (a proxy). */
export async function startReplica(of: number, args: readonly string[] = []): Promise<RedisServer> {
  const replica = await RedisServer.start({
    args: ["--replicaof", "127.0.0.1", String(of), ...FAST, ...args],
  });
  await until(
    async () => (await replica.cli("INFO", "replication")).includes("master_link_status:up"),
    20_000,
  );
  return replica;
}

/** Replication without the pauses that spare a large server. */
export const FAST = ["--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"];

/** One primary, two replicas, three Sentinels that promote one of them when the primary is silent for a second. */
export class RedisSentinels {
  readonly servers: readonly RedisServer[];
  readonly #ports: readonly number[];
  readonly #directory: string;
  readonly #processes: readonly ChildProcess[];

  private constructor(
    servers: readonly RedisServer[],
    ports: readonly number[],
    directory: string,
    processes: readonly ChildProcess[],
  ) {
    this.servers = servers;
    this.#ports = ports;
    this.#directory = directory;
    this.#processes = processes;
  }

  /** `reached`: the port by which replicas and Sentinels reach the primary, if not its own (a proxy). */
  static async start(
    reached: (port: number) => number | Promise<number> = (port) => port,
  ): Promise<RedisSentinels> {
    const primary = await RedisServer.start({ args: FAST });
    const port = await reached(primary.port);
    const replicas = await Promise.all([startReplica(port), startReplica(port)]);
    const directory = await mkdtemp(join(tmpdir(), "conclave-sentinel-"));
    const ports = await freePorts(3);
    const processes = await Promise.all(ports.map((own) => startSentinel(directory, own, port)));
    const group = new RedisSentinels([primary, ...replicas], ports, directory, processes);
    const complete = async (): Promise<boolean> =>
      (await Promise.all(ports.map((each) => group.#knows(each)))).every(Boolean);
    await until(complete, 30_000).catch(async (error: unknown) => {
      await group.stop();
      throw error;
    });
    return group;
  }

  get url(): string {
    return `redis://${this.#ports.map((port) => `127.0.0.1:${port}`).join(",")}?sentinel=${NAME}`;
  }

  get sentinels(): { host: string; port: number }[] {
    return this.#ports.map((port) => ({ host: "127.0.0.1", port }));
  }

  /** The server that the Sentinels say is the primary. */
  async primary(): Promise<RedisServer> {
    const { stdout } = await run(redisCommand("redis-cli"), [
      ...["-p", String(this.#ports[0]), "SENTINEL", "get-master-addr-by-name", NAME],
    ]);
    const port = Number(stdout.trim().split("\n")[1]);
    return this.servers.find((server) => server.port === port)!;
  }

  /** Until another server than this one is primary and says so itself. */
  async promoted(old: RedisServer): Promise<RedisServer> {
    let found = old;
    await until(async () => {
      found = await this.primary();
      return found !== old && (await found.cli("ROLE")).startsWith("master");
    }, 40_000);
    return found;
  }

  async stop(): Promise<void> {
    for (const process of this.#processes) process.kill("SIGKILL");
    await Promise.all(this.servers.map((server) => server.stop()));
    await rm(this.#directory, { recursive: true, force: true });
  }

  /** Whether a Sentinel has found the replicas and the other Sentinels. */
  async #knows(port: number): Promise<boolean> {
    const { stdout } = await run(redisCommand("redis-cli"), ["-p", String(port), "INFO", "sentinel"]).catch(
      () => ({
        stdout: "",
      }),
    );
    return /status=ok.*slaves=2,sentinels=3/.test(stdout);
  }
}

async function startSentinel(directory: string, port: number, primary: number): Promise<ChildProcess> {
  const file = join(directory, `${port}.conf`);
  await writeFile(
    file,
    [
      `port ${port}`,
      "bind 127.0.0.1",
      `dir ${directory}`,
      `sentinel monitor ${NAME} 127.0.0.1 ${primary} 2`,
      `sentinel down-after-milliseconds ${NAME} 1000`,
      `sentinel failover-timeout ${NAME} 5000`,
      "",
    ].join("\n"),
  );
  return spawn(redisCommand("redis-sentinel"), [file], { stdio: "ignore" });
}

/** Three nodes that share the slots. */
export async function startCluster(): Promise<RedisServer[]> {
  const args = ["--cluster-enabled", "yes", "--cluster-node-timeout", "2000"];
  const nodes = await Promise.all([1, 2, 3].map(() => RedisServer.start({ args })));
  const addresses = nodes.map(({ port }) => `127.0.0.1:${port}`);
  const create = ["--cluster", "create", ...addresses, "--cluster-replicas", "0", "--cluster-yes"];
  const ok = async (): Promise<boolean> => {
    const told = await Promise.all(nodes.map((node) => node.cli("CLUSTER", "INFO")));
    return told.every((info) => info.includes("cluster_state:ok"));
  };
  try {
    await run(redisCommand("redis-cli"), create);
    await until(ok, 30_000);
    return nodes;
  } catch (error) {
    await Promise.all(nodes.map((node) => node.stop()));
    throw error;
  }
}
