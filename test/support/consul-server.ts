/**
 * Consul for tests: one server or several, with a client agent if wanted, on
 * free loopback ports, in a directory of its own, with or without TLS and ACLs.
 * Nothing is left behind.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { ConsulTlsFiles } from "../../src/backends/consul/index.js";
import { makeCertificates } from "./certificates.js";
import { consulCommand } from "./consul-command.js";
import { freePorts } from "./free-ports.js";

export { hasConsul } from "./consul-command.js";

const run = promisify(execFile);

export interface ConsulServerOptions {
  readonly servers?: number;
  /** Also an agent that is no server, as programs usually have one on their own machine. */
  readonly agent?: boolean;
  readonly tls?: "server" | "mutual";
  /** ACLs on, denying by default. */
  readonly acl?: boolean;
  /** Shortest session, in seconds. Default 1, so that tests need not wait long. */
  readonly ttlMin?: number;
}

interface Ports {
  readonly http: number;
  readonly https: number;
  readonly serf: number;
  readonly server: number;
}

export class ConsulNode {
  readonly name: string;
  readonly ports: Ports;
  readonly isServer: boolean;
  readonly #directory: string;
  #process: ChildProcess | undefined;

  constructor(name: string, ports: Ports, isServer: boolean, directory: string) {
    this.name = name;
    this.ports = ports;
    this.isServer = isServer;
    this.#directory = directory;
  }

  get address(): string {
    return `127.0.0.1:${this.ports.http}`;
  }

  get running(): boolean {
    return this.#process !== undefined;
  }

  start(): void {
    const log = openSync(join(this.#directory, `${this.name}.log`), "a");
    const config = join(this.#directory, `${this.name}.json`);
    this.#process = spawn(consulCommand(), ["agent", "-config-file", config], {
      stdio: ["ignore", log, log],
      env: consulEnv(),
    });
    this.#process.on("error", () => {});
    closeSync(log);
  }

  signal(signal: NodeJS.Signals): void {
    this.#process?.kill(signal);
  }

  /** Ends the process, however stuck it is, and waits for it. Its data stays. */
  async kill(): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await gone;
  }

  /** Its data is lost. Only while it does not run. */
  async wipe(): Promise<void> {
    await rm(join(this.#directory, this.name), { recursive: true, force: true });
  }
}

export class ConsulServer {
  readonly nodes: readonly ConsulNode[];
  readonly directory: string;
  readonly tls: ConsulTlsFiles | undefined;
  /** May do everything; only with ACLs on. */
  rootToken: string | undefined;

  private constructor(nodes: readonly ConsulNode[], directory: string, tls: ConsulTlsFiles | undefined) {
    this.nodes = nodes;
    this.directory = directory;
    this.tls = tls;
  }

  static async start(options: ConsulServerOptions = {}): Promise<ConsulServer> {
    const directory = await mkdtemp(join(tmpdir(), "conclave-consul-"));
    const certificates = options.tls === undefined ? undefined : await makeCertificates(directory);
    const servers = options.servers ?? 1;
    const count = servers + (options.agent === true ? 1 : 0);
    const ports = await freePorts(4 * count);
    const nodes = Array.from({ length: count }, (_, i) => {
      const [http = 0, https = 0, serf = 0, server = 0] = ports.slice(4 * i);
      return new ConsulNode(`n${i}`, { http, https, serf, server }, i < servers, directory);
    });
    const { ca, cert, key } = certificates ?? {};
    const tls = options.tls === "mutual" ? { ca, cert, key } : { ca };
    const server = new ConsulServer(nodes, directory, certificates && tls);
    try {
      for (const node of nodes) {
        const config = configOf(node, nodes, servers, directory, options);
        await writeFile(join(directory, `${node.name}.json`), JSON.stringify(config));
        node.start();
      }
      await server.ready();
      if (options.acl === true) await server.#bootstrap();
    } catch (error) {
      const log = await readFile(join(directory, "n0.log"), "utf8").catch(() => "");
      await server.stop();
      throw new Error(`Consul did not start: ${String(error)}\n${log.slice(-2000)}`, { cause: error });
    }
    return server;
  }

  get servers(): ConsulNode[] {
    return this.nodes.filter((node) => node.isServer);
  }

  /** Where programs talk to: the agent if there is one. */
  get entry(): ConsulNode {
    return this.nodes.at(-1)!;
  }

  get address(): string {
    return this.entry.address;
  }

  /** One request, behind the back of what is tested. Over plain HTTP, which is always open. */
  async api(method: string, path: string, body?: unknown, node = this.entry): Promise<unknown> {
    const response = await fetch(`http://${node.address}${path}`, {
      method,
      headers: this.rootToken === undefined ? {} : { "x-consul-token": this.rootToken },
      ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
      signal: AbortSignal.timeout(5_000),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text === "" ? undefined : JSON.parse(text);
  }

  /** Waits until every node that runs answers consistent reads. */
  async ready(nodes: readonly ConsulNode[] = this.nodes): Promise<void> {
    const until = performance.now() + 60_000;
    for (const node of nodes.filter(({ running }) => running)) {
      for (;;) {
        const answer = await this.#status(node);
        if (answer) break;
        if (performance.now() > until) throw new Error(`${node.name} is not ready after 60 s`);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
  }

  /** The server that leads the others. */
  async leader(): Promise<ConsulNode> {
    const until = performance.now() + 60_000;
    while (performance.now() < until) {
      for (const node of this.nodes.filter(({ running }) => running)) {
        const address = await this.api("GET", "/v1/status/leader", undefined, node).catch(() => "");
        const found = this.servers.find(({ ports }) => address === `127.0.0.1:${ports.server}`);
        if (found?.running === true) return found;
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error("Consul has no leader");
  }

  /** A token with these rules. */
  async token(rules: string): Promise<string> {
    const name = `p${Math.random().toString(36).slice(2)}`;
    await this.api("PUT", "/v1/acl/policy", { Name: name, Rules: rules });
    const made = await this.api("PUT", "/v1/acl/token", { Policies: [{ Name: name }] });
    return (made as { SecretID: string }).SecretID;
  }

  /** Starts `consul …` that goes on. */
  command(...args: string[]): ChildProcess {
    return spawn(consulCommand(), args, {
      env: { ...consulEnv(), CONSUL_HTTP_ADDR: this.address },
      stdio: ["ignore", "pipe", "pipe"],
    });
  }

  /** Runs `consul …` to its end. */
  async run(...args: string[]): Promise<string> {
    const env = { ...consulEnv(), CONSUL_HTTP_ADDR: this.address };
    return (await run(consulCommand(), args, { env })).stdout;
  }

  async stop(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.kill()));
    await rm(this.directory, { recursive: true, force: true });
  }

  async #status(node: ConsulNode): Promise<boolean> {
    try {
      const response = await fetch(`http://${node.address}/v1/kv/nothing-at-all?consistent`, {
        signal: AbortSignal.timeout(1_000),
      });
      const text = await response.text();
      // With ACLs it is refused, but by a cluster that works.
      return response.status === 404 || /permission denied|acl not found/i.test(text);
    } catch {
      return false;
    }
  }

  async #bootstrap(): Promise<void> {
    const until = performance.now() + 30_000;
    for (;;) {
      try {
        const made = await this.api("PUT", "/v1/acl/bootstrap");
        this.rootToken = (made as { SecretID: string }).SecretID;
        break;
      } catch (error) {
        if (performance.now() > until) throw error;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }
    // Sessions are made in the name of a node, which the server registers by itself only with a token of its own.
    for (const node of this.servers)
      await this.api("PUT", "/v1/agent/token/agent", { Token: this.rootToken }, node);
  }
}

function configOf(
  node: ConsulNode,
  nodes: readonly ConsulNode[],
  servers: number,
  directory: string,
  options: ConsulServerOptions,
): unknown {
  const { http, https, serf, server } = node.ports;
  const file = (name: string): string => join(directory, name);
  return {
    ...{ node_name: node.name, data_dir: file(node.name), bind_addr: "127.0.0.1", client_addr: "127.0.0.1" },
    ...{ disable_host_node_id: true, disable_update_check: true, log_level: "INFO" },
    ports: {
      ...{ http, https: options.tls === undefined ? -1 : https, dns: -1, grpc: -1 },
      ...{ serf_lan: serf, serf_wan: -1, server },
    },
    performance: { raft_multiplier: 1 },
    session_ttl_min: `${options.ttlMin ?? 1}s`,
    retry_join: nodes.filter((other) => other !== node).map(({ ports }) => `127.0.0.1:${ports.serf}`),
    retry_interval: "1s",
    ...(node.isServer && { server: true, bootstrap_expect: servers }),
    ...(options.acl === true && { acl: { enabled: true, default_policy: "deny" } }),
    ...(options.tls !== undefined && {
      ...{ ca_file: file("ca.pem"), cert_file: file("server.pem"), key_file: file("server.key") },
      verify_incoming_https: options.tls === "mutual",
    }),
  };
}

/** Nothing of the environment that would send it to another Consul. */
function consulEnv(): NodeJS.ProcessEnv {
  return { PATH: process.env["PATH"], HOME: process.env["HOME"] };
}
