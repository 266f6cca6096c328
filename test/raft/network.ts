/**
 * Hosts that share a kernel but no network: a namespace for each, a cable from
 * each to a router, which loses what it is told to lose, in one direction or in
 * both. Whoever sent it is not told. Made by the test, gone with it; the network
 * of this machine is not touched.
 */
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";

export interface Host {
  readonly address: string;
  /** Begins the command line of whatever shall run there. */
  readonly through: readonly string[];
}

let made = 0;

/** Why it cannot be done here; `undefined` if it can. */
export function lacking(): string | undefined {
  if (process.getuid?.() !== 0) return "network namespaces and small disks need root";
  for (const command of ["ip", "nsenter", "mount", "umount"])
    if (spawnSync("sh", ["-c", `command -v ${command}`]).status !== 0) return `${command} is not installed`;
  const name = `conclave-try-${process.pid}`;
  if (spawnSync("ip", ["netns", "add", name]).status !== 0) return "network namespaces cannot be made here";
  const route = ["-n", name, "rule", "add", "from", "10.97.0.2", "to", "10.97.1.2", "blackhole"];
  const rules = spawnSync("ip", route).status === 0;
  spawnSync("ip", ["netns", "del", name]);
  return rules ? undefined : "routes cannot be cut here";
}

export class Network {
  readonly hosts: readonly Host[];
  readonly #id = `conclave-peers-${process.pid}-${made++}`;
  readonly #router = `${this.#id}-router`;
  readonly #namespaces: string[] = [];
  readonly #cuts = new Set<string>();

  constructor(count: number) {
    this.#namespace(this.#router);
    const forward = "echo 1 > /proc/sys/net/ipv4/ip_forward";
    execFileSync("nsenter", [...inside(this.#router), "sh", "-c", forward]);
    this.hosts = Array.from({ length: count }, (_, index) => this.#connect(index));
  }

  /** From now on nothing of what the first of each pair sends reaches the second; or all of it again. */
  async cut(pairs: readonly (readonly [number, number])[], on: boolean): Promise<void> {
    const changed = pairs.filter(([from, to]) => this.#cuts.has(`${from} ${to}`) !== on);
    for (const [from, to] of changed) {
      if (on) this.#cuts.add(`${from} ${to}`);
      else this.#cuts.delete(`${from} ${to}`);
    }
    const lines = changed.map(
      ([from, to]) =>
        `rule ${on ? "add" : "del"} from ${this.hosts[from]!.address} to ${this.hosts[to]!.address} blackhole`,
    );
    // In one process, and without waiting for it here: others are under fault at the same time.
    const child = spawn("ip", ["-n", this.#router, "-batch", "-"], { stdio: ["pipe", "ignore", "inherit"] });
    const ended = once(child, "close");
    child.stdin.end(`${lines.join("\n")}\n`);
    const [code] = await ended;
    if (code !== 0) throw new Error(`ip ended with ${String(code)}`);
  }

  /** Whether what the one sends reaches the other. */
  reaches(from: number, to: number): boolean {
    return !this.#cuts.has(`${from} ${to}`);
  }

  close(): void {
    for (const name of this.#namespaces) spawnSync("ip", ["netns", "del", name]);
  }

  #namespace(name: string): string {
    ip("netns", "add", name);
    this.#namespaces.push(name);
    ip("-n", name, "link", "set", "lo", "up");
    return name;
  }

  #connect(index: number): Host {
    const namespace = this.#namespace(`${this.#id}-${index}`);
    const [cable, address, gateway] = [`host${index}`, `10.97.${index}.2`, `10.97.${index}.1`];
    const far = ["name", "cable", "netns", namespace];
    ip("-n", this.#router, "link", "add", cable, "type", "veth", "peer", ...far);
    ip("-n", this.#router, "address", "add", `${gateway}/24`, "dev", cable);
    ip("-n", namespace, "address", "add", `${address}/24`, "dev", "cable");
    ip("-n", this.#router, "link", "set", cable, "up");
    ip("-n", namespace, "link", "set", "cable", "up");
    ip("-n", namespace, "route", "add", "default", "via", gateway);
    return { address, through: ["nsenter", ...inside(namespace)] };
  }
}

function inside(namespace: string): string[] {
  return [`--net=/run/netns/${namespace}`];
}

function ip(...args: string[]): void {
  execFileSync("ip", args, { stdio: ["ignore", "ignore", "pipe"] });
}
