/**
 * Two machines, as far as a program can tell: each with a network, a host name, processes, a home and temporary directories of its own.
 * Both reach one machine with stores, under the names that the documentation uses. Made by the test, gone with it.
 */
import { execFile, spawn, spawnSync } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { chownSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { lacking as noNetwork, Network } from "../exec/network.js";
import { until } from "../exec/wrapped.js";
import { ROOT } from "../shape/sources.js";
import { hasPostgres, postgresCommand, serverUser } from "../support/postgres-command.js";

const run = promisify(execFile);
/** By which the examples call the stores. */
const NAMES = ["etcd", "etcd-1", "etcd-2", "etcd-3", "db", "redis"];
const OWN = ["/tmp", "/root", "/home", "/var/lib", "/var/tmp", "/run"];
const LIMIT_MS = 30_000;

/** Why it cannot be done here; `undefined`: it can. */
export function lacking(): string | undefined {
  const network = noNetwork();
  if (network !== undefined) return network;
  const namespaces = ["--mount", "--uts", "--pid", "--fork", "--mount-proc", "--kill-child"];
  const made = spawnSync("unshare", [...namespaces, "mount", "-t", "tmpfs", "tmpfs", "/mnt"]).status === 0;
  return made ? undefined : "mount namespaces cannot be made here";
}

export const stores = {
  postgres: hasPostgres(),
  redis: spawnSync("redis-server", ["--version"]).status === 0,
};

export interface Machine {
  readonly name: string;
  /** Begins the command line of what shall run there. */
  readonly through: readonly string[];
}

export class Machines {
  readonly folder: string;
  machines: readonly Machine[] = [];
  #network: Network | undefined;
  readonly #servers: ChildProcess[] = [];
  readonly #holders: ChildProcess[] = [];

  /** `folder`: for the data of the stores. */
  constructor(folder: string) {
    this.folder = folder;
  }

  /** `databases`: the names of those that are made in PostgreSQL. */
  async start(names: readonly string[], databases: readonly string[]): Promise<void> {
    const network = (this.#network = new Network(names));
    const etcd = network.startEtcd(this.folder);
    await Promise.all([etcd, this.#postgres(network, databases), this.#redis(network)]);
    const address = await etcd;
    this.machines = await Promise.all(
      names.map((name, index) =>
        this.#machine(name, network.places[index]!.through, address(index).split(":")[0]!),
      ),
    );
  }

  async close(): Promise<void> {
    // What runs on a machine ends with its first process.
    await Promise.all(this.#holders.map((holder) => ended(holder, "SIGKILL")));
    await Promise.all(this.#servers.map((server) => ended(server, "SIGINT")));
    await this.#network?.close();
  }

  async #machine(name: string, through: readonly string[], stores: string): Promise<Machine> {
    const hosts = join(this.folder, `hosts-${name}`);
    writeFileSync(hosts, `127.0.0.1 localhost ${name}\n${stores} ${NAMES.join(" ")}\n`);
    const kept = keptFolders();
    const setup = [
      "set -e",
      `hostname ${name}`,
      `mount --bind ${hosts} /etc/hosts`,
      // What the tests need of the folders that are about to be hidden is carried over.
      ...kept.map((folder, i) => `mkdir -p /mnt/k${i}; mount --bind ${folder} /mnt/k${i}`),
      ...OWN.map((folder) => `mount -t tmpfs tmpfs ${folder}`),
      ...kept.map((folder, i) => `mkdir -p ${folder}; mount --move /mnt/k${i} ${folder}`),
      "mkdir -p /root/app; echo ready; exec sleep infinity",
    ].join("\n");
    const apart = ["--mount", "--uts", "--ipc", "--pid", "--fork", "--mount-proc", "--kill-child"];
    // Its own /mnt first: nothing is made in the real one.
    const script = `mount -t tmpfs tmpfs /mnt\n${setup}`;
    const words = [...through, "unshare", ...apart, "sh", "-c", script];
    const holder = spawn(words[0]!, words.slice(1), { stdio: ["ignore", "pipe", "inherit"] });
    this.#holders.push(holder);
    await new Promise<void>((resolve, reject) => {
      holder.stdout.once("data", () => resolve());
      holder.once("exit", () => reject(new Error(`machine ${name} could not be made`)));
    });
    const first = readFileSync(`/proc/${holder.pid}/task/${holder.pid}/children`, "utf8").trim();
    const namespaces = ["--mount", "--uts", "--ipc", "--pid", "--net"];
    return { name, through: ["nsenter", "-t", first, ...namespaces, "--wdns=/root/app"] };
  }

  async #postgres(network: Network, databases: readonly string[]): Promise<void> {
    if (!stores.postgres) return;
    const data = join(this.folder, "postgres");
    const user = serverUser();
    mkdirSync(data);
    if (user !== undefined) {
      chownSync(data, user.uid, user.gid);
      chownSync(this.folder, user.uid, user.gid);
    }
    const as =
      user === undefined ? [] : ["setpriv", `--reuid=${user.uid}`, `--regid=${user.gid}`, "--clear-groups"];
    const initdb = [...as, postgresCommand("initdb"), "-D", data, "-U", "app", "-A", "trust", "-N"];
    await run(initdb[0]!, initdb.slice(1), { cwd: data });
    writeFileSync(join(data, "pg_hba.conf"), "host all all 0.0.0.0/0 trust\n");
    const options = { listen_addresses: "*", unix_socket_directories: "", fsync: "off" };
    const settings = Object.entries(options).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    this.#serve([...network.storeSide, ...as, postgresCommand("postgres"), "-D", data, ...settings]);
    const psql = (...words: string[]): boolean =>
      spawnSync("nsenter", [
        ...network.storeSide.slice(1),
        "psql",
        "-h",
        "127.0.0.1",
        "-U",
        "app",
        "-d",
        "postgres",
        ...words,
      ]).status === 0;
    await until(() => psql("-c", "select 1"), LIMIT_MS);
    const made = psql(...databases.flatMap((name) => ["-c", `create database ${name} template template0`]));
    if (!made) throw new Error("the databases could not be made");
  }

  async #redis(network: Network): Promise<void> {
    if (!stores.redis) return;
    const settings = ["--protected-mode", "no", "--save", "", "--dir", this.folder];
    this.#serve([...network.storeSide, "redis-server", ...settings]);
    const ping = ["redis-cli", "-h", "127.0.0.1", "ping"];
    await until(() => spawnSync("nsenter", [...network.storeSide.slice(1), ...ping]).status === 0, LIMIT_MS);
  }

  #serve(words: readonly string[]): void {
    this.#servers.push(spawn(words[0]!, words.slice(1), { stdio: "ignore" }));
  }
}

/** Of the folders that each machine has for itself: what programs of the tests are in. */
function keptFolders(): string[] {
  return [ROOT.replace(/\/$/, ""), dirname(dirname(process.execPath))].filter((folder) =>
    OWN.some((own) => folder.startsWith(`${own}/`)),
  );
}

function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<unknown> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  const gone = new Promise((resolve) => child.once("exit", resolve));
  child.kill(signal);
  return gone;
}
