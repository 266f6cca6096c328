/**
 * Hosts that share a kernel but no network: one namespace for the store, one
 * for each host, a cable between each host and the store. Made by the test,
 * gone with it; the network of this machine is not touched.
 */
import { execFileSync, spawn, spawnSync } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { join } from "node:path";
import { etcdCommand } from "../support/etcd-command.js";
import type { Place } from "./faults.js";
import { until } from "./wrapped.js";

const CLIENT_PORT = 2379;

/** Why it cannot be done here; `undefined` if it can. */
export function lacking(): string | undefined {
  if (process.getuid?.() !== 0) return "network namespaces need root";
  for (const command of ["ip", "nsenter", etcdCommand("etcd"), etcdCommand("etcdctl")]) {
    if (spawnSync("sh", ["-c", `command -v ${command}`]).status !== 0) return `${command} is not installed`;
  }
  const name = `conclave-try-${process.pid}`;
  if (spawnSync("ip", ["netns", "add", name]).status !== 0) return "network namespaces cannot be made here";
  spawnSync("ip", ["netns", "del", name]);
  return undefined;
}

export class Network {
  readonly places: readonly Place[];
  readonly #store: string;
  readonly #namespaces: string[] = [];
  #etcd: ChildProcess | undefined;

  constructor(hosts: readonly string[]) {
    const id = `${process.pid}-${Date.now() % 100_000}`;
    this.#store = this.#namespace(`conclave-store-${id}`);
    this.places = hosts.map((name, index) => this.#connect(name, `conclave-${name}-${id}`, index));
  }

  /** Starts a store that every host can reach, and returns where host number `index` finds it. */
  async startEtcd(directory: string): Promise<(index: number) => string> {
    const everywhere = `http://0.0.0.0:${CLIENT_PORT}`;
    const args = ["--data-dir", join(directory, "etcd"), "--listen-client-urls", everywhere];
    const advertise = ["--advertise-client-urls", `http://127.0.0.1:${CLIENT_PORT}`];
    this.#etcd = spawn("nsenter", [...inside(this.#store), etcdCommand("etcd"), ...args, ...advertise], {
      stdio: "ignore",
    });
    await until(() => this.etcdctl("endpoint", "health"), 30_000);
    return (index) => `${address(index)}:${CLIENT_PORT}`;
  }

  /** Begins the command line of what shall run where the store is. */
  get storeSide(): readonly string[] {
    return ["nsenter", ...inside(this.#store)];
  }

  /** Whether it succeeded. */
  etcdctl(...args: string[]): boolean {
    const env = { PATH: process.env["PATH"], ETCDCTL_API: "3" };
    return (
      spawnSync("nsenter", [...inside(this.#store), etcdCommand("etcdctl"), ...args], { env }).status === 0
    );
  }

  async close(): Promise<void> {
    const etcd = this.#etcd;
    if (etcd !== undefined && etcd.exitCode === null) {
      const gone = new Promise((resolve) => etcd.once("exit", resolve));
      etcd.kill("SIGKILL");
      await gone;
    }
    for (const name of this.#namespaces) spawnSync("ip", ["netns", "del", name]);
  }

  #namespace(name: string): string {
    ip("netns", "add", name);
    this.#namespaces.push(name);
    ip("-n", name, "link", "set", "lo", "up");
    return name;
  }

  #connect(name: string, namespace: string, index: number): Place {
    this.#namespace(namespace);
    const cable = `host${index}`;
    ip("-n", this.#store, "link", "add", cable, "type", "veth", "peer", "name", "store", "netns", namespace);
    ip("-n", this.#store, "address", "add", `${address(index)}/24`, "dev", cable);
    ip("-n", namespace, "address", "add", `10.99.${index}.2/24`, "dev", "store");
    ip("-n", this.#store, "link", "set", cable, "up");
    ip("-n", namespace, "link", "set", "store", "up");
    return {
      name,
      through: ["nsenter", ...inside(namespace)],
      // At the far end: the host itself is not told, what it sends is lost.
      cut: () => ip("-n", this.#store, "link", "set", cable, "down"),
      heal: () => ip("-n", this.#store, "link", "set", cable, "up"),
    };
  }
}

function inside(namespace: string): string[] {
  return [`--net=/run/netns/${namespace}`];
}

/** Of the store, on the cable to host number `index`. */
function address(index: number): string {
  return `10.99.${index}.1`;
}

function ip(...args: string[]): void {
  execFileSync("ip", args, { stdio: ["ignore", "ignore", "pipe"] });
}
