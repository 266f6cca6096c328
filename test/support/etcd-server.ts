/**
 * etcd for tests: one member or several, on free loopback ports, in a directory
 * of its own, with or without TLS and authentication. Nothing is left behind.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { GrpcEtcdClient } from "../../src/backends/etcd/client/grpc-client.js";
import { makeCertificates, makeSigningKey, signedTokens } from "./certificates.js";
import { etcdCommand } from "./etcd-command.js";
import { freePorts } from "./free-ports.js";
import { parseEndpoint, type TlsFiles } from "../../src/backends/etcd/client/endpoint.js";

export { hasEtcd } from "./etcd-command.js";

const run = promisify(execFile);

export interface EtcdOptions {
  readonly members?: number;
  readonly tls?: "server" | "mutual";
  /** Switches authentication on, with this password for `root`. */
  readonly rootPassword?: string;
  /** Seconds after which etcd forgets a token that nobody uses. Default 300, as etcd's own. */
  readonly tokenTtl?: number;
  /** Signed tokens, which age whether used or not, and which any change of users or roles makes stale. */
  readonly jwtTtl?: number;
  /** Milliseconds; etcd's smallest lease is one and a half of it. Default 1000, as etcd's own. */
  readonly electionMs?: number;
  /** Where its directory is made. Default: where temporary files go. */
  readonly home?: string | undefined;
}

export class EtcdMember {
  readonly name: string;
  readonly endpoint: string;
  readonly peerUrl: string;
  readonly #directory: string;
  readonly #args: readonly string[];
  #process: ChildProcess | undefined;

  constructor(name: string, endpoint: string, peerUrl: string, directory: string, args: readonly string[]) {
    this.name = name;
    this.endpoint = endpoint;
    this.peerUrl = peerUrl;
    this.#directory = directory;
    this.#args = args;
  }

  get pid(): number | undefined {
    return this.#process?.pid;
  }

  start(): void {
    const log = openSync(join(this.#directory, `${this.name}.log`), "a");
    this.#process = spawn(etcdCommand("etcd"), [...this.#args], { stdio: ["ignore", log, log] });
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
}

export class EtcdServer {
  readonly members: readonly EtcdMember[];
  readonly directory: string;
  readonly tls: TlsFiles | undefined;
  readonly rootPassword: string | undefined;

  private constructor(
    members: readonly EtcdMember[],
    directory: string,
    tls: TlsFiles | undefined,
    options: EtcdOptions,
  ) {
    this.members = members;
    this.directory = directory;
    this.tls = tls;
    this.rootPassword = options.rootPassword;
  }

  static async start(options: EtcdOptions = {}): Promise<EtcdServer> {
    const directory = await mkdtemp(join(options.home ?? tmpdir(), "conclave-etcd-"));
    const tls = options.tls === undefined ? undefined : await makeCertificates(directory);
    if (options.jwtTtl !== undefined) await makeSigningKey(directory);
    const count = options.members ?? 1;
    const ports = await freePorts(2 * count);
    const scheme = tls === undefined ? "http" : "https";
    const names = Array.from({ length: count }, (_, i) => `m${i}`);
    const peers = names.map((name, i) => `${name}=http://127.0.0.1:${ports[2 * i]}`).join(",");
    const members = names.map((name, i) => {
      const client = `${scheme}://127.0.0.1:${ports[2 * i + 1]}`;
      const peer = `http://127.0.0.1:${ports[2 * i]}`;
      const args = [
        ...["--name", name, "--data-dir", join(directory, name), "--initial-cluster", peers],
        ...["--listen-client-urls", client, "--advertise-client-urls", client],
        ...["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer],
        ...[
          "--heartbeat-interval",
          String((options.electionMs ?? 1000) / 10),
          "--election-timeout",
          String(options.electionMs ?? 1000),
        ],
        ...(options.tokenTtl === undefined ? [] : ["--auth-token-ttl", String(options.tokenTtl)]),
        ...(options.jwtTtl === undefined ? [] : ["--auth-token", signedTokens(directory, options.jwtTtl)]),
        ...(tls === undefined
          ? []
          : ["--cert-file", join(directory, "server.pem"), "--key-file", join(directory, "server.key")]),
        ...(options.tls === "mutual"
          ? ["--client-cert-auth", "--trusted-ca-file", join(directory, "ca.pem")]
          : []),
      ];
      return new EtcdMember(name, `127.0.0.1:${ports[2 * i + 1]}`, peer, directory, args);
    });
    const server = new EtcdServer(members, directory, tls, options);
    try {
      for (const member of members) member.start();
      await server.ready();
      if (options.rootPassword !== undefined) await server.#enableAuth(options.rootPassword);
    } catch (error) {
      const log = await readFile(join(directory, "m0.log"), "utf8").catch(() => "");
      await server.stop();
      throw new Error(`etcd did not start: ${String(error)}\n${log.slice(-2000)}`, { cause: error });
    }
    return server;
  }

  get endpoints(): string[] {
    return this.members.map((member) => member.endpoint);
  }

  /** A client of our own, for looking at the store behind the back of what is tested. */
  client(endpoints: readonly string[] = this.endpoints): GrpcEtcdClient {
    return new GrpcEtcdClient({
      endpoints: endpoints.map(parseEndpoint),
      tls: this.tls,
      credentials:
        this.rootPassword === undefined ? undefined : { username: "root", password: this.rootPassword },
    });
  }

  /** Waits until every member that runs answers and knows a leader. */
  async ready(members: readonly EtcdMember[] = this.members): Promise<void> {
    const until = performance.now() + 30_000;
    for (const member of members) {
      for (;;) {
        if ((await this.#leaderSeenBy(member)) !== undefined) break;
        if (performance.now() > until) throw new Error(`${member.name} is not ready after 30 s`);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
  }

  /** The member that leads the cluster, as the running ones know it. */
  async leader(): Promise<EtcdMember> {
    const until = performance.now() + 30_000;
    while (performance.now() < until) {
      for (const member of this.members) {
        const seen = await this.#leaderSeenBy(member);
        if (seen?.leads === true) return member;
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error("the cluster has no leader");
  }

  async #leaderSeenBy(member: EtcdMember): Promise<{ leads: boolean } | undefined> {
    if (member.pid === undefined) return undefined;
    const client = new GrpcEtcdClient({ endpoints: [parseEndpoint(member.endpoint)], tls: this.tls });
    try {
      const status = await client.status({ signal: new AbortController().signal, limitMs: 500 });
      return status.leader === 0n ? undefined : { leads: status.leader === status.memberId };
    } catch {
      return undefined;
    } finally {
      await client[Symbol.asyncDispose]();
    }
  }

  /** Sum over the samples of a counter on the first member's metrics page whose labels hold all of these. */
  async counted(name: string, ...labels: string[]): Promise<number> {
    const page = await (await fetch(`http://${this.endpoints[0]}/metrics`)).text();
    return page
      .split("\n")
      .filter((line) => line.startsWith(`${name}{`) && labels.every((label) => line.includes(label)))
      .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);
  }

  /** Runs etcdctl to its end. */
  async etcdctl(...args: string[]): Promise<string> {
    const { stdout } = await run(etcdCommand("etcdctl"), [...this.etcdctlFlags(), ...args], {
      env: etcdctlEnv(),
    });
    return stdout;
  }

  /** Starts an etcdctl that goes on (elect, lock, watch). */
  etcdctlProcess(...args: string[]): ChildProcess {
    return spawn(etcdCommand("etcdctl"), [...this.etcdctlFlags(), ...args], {
      env: etcdctlEnv(),
      stdio: ["ignore", "pipe", "pipe"],
    });
  }

  etcdctlFlags(): string[] {
    const scheme = this.tls === undefined ? "http" : "https";
    return [
      ...["--endpoints", this.endpoints.map((endpoint) => `${scheme}://${endpoint}`).join(",")],
      ...(this.tls?.ca === undefined ? [] : ["--cacert", this.tls.ca]),
      ...(this.tls?.cert === undefined ? [] : ["--cert", this.tls.cert]),
      ...(this.tls?.key === undefined ? [] : ["--key", this.tls.key]),
      ...(this.rootPassword === undefined ? [] : ["--user", `root:${this.rootPassword}`]),
    ];
  }

  async #enableAuth(password: string): Promise<void> {
    const flags = this.etcdctlFlags().filter((flag, i, all) => flag !== "--user" && all[i - 1] !== "--user");
    const ctl = (...args: string[]): Promise<unknown> =>
      run(etcdCommand("etcdctl"), [...flags, ...args], { env: etcdctlEnv() });
    await ctl("user", "add", `root:${password}`);
    await ctl("user", "grant-role", "root", "root");
    await ctl("auth", "enable");
  }

  async stop(): Promise<void> {
    await Promise.all(this.members.map((member) => member.kill()));
    await rm(this.directory, { recursive: true, force: true });
  }
}

export function etcdctlEnv(): NodeJS.ProcessEnv {
  return { PATH: process.env["PATH"], HOME: process.env["HOME"], ETCDCTL_API: "3" };
}
