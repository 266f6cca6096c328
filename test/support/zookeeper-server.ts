/**
 * ZooKeeper for tests: one server or an ensemble, on free loopback ports, in a
 * directory of its own, with or without TLS. Nothing is left behind.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TlsFiles } from "../../src/backends/zookeeper/client/endpoint.js";
import { makeCertificates } from "./certificates.js";
import { freePorts } from "./free-ports.js";
import { classPath } from "./zookeeper-command.js";

export { hasZooKeeper } from "./zookeeper-command.js";

export interface ZooKeeperServerOptions {
  readonly members?: number;
  /** Milliseconds; sessions last 2 to 20 of them. Default 500. */
  readonly tickMs?: number;
  readonly tls?: "server" | "mutual";
  /** More lines of zoo.cfg. */
  readonly config?: readonly string[];
  /** More options of Java: `-Dzookeeper.…`. */
  readonly java?: readonly string[];
  /** The port that one member dials to follow another, instead of the real one. For proxies between them. */
  readonly quorumPort?: (from: number, to: number, real: number) => Promise<number>;
}

export class ZooKeeperMember {
  readonly id: number;
  readonly port: number;
  readonly #directory: string;
  readonly #java: readonly string[];
  #process: ChildProcess | undefined;

  constructor(id: number, port: number, directory: string, java: readonly string[]) {
    this.id = id;
    this.port = port;
    this.#directory = directory;
    this.#java = java;
  }

  get host(): string {
    return `127.0.0.1:${this.port}`;
  }

  get pid(): number | undefined {
    return this.#process?.pid;
  }

  get log(): string {
    return join(this.#directory, "log");
  }

  start(): void {
    const log = openSync(this.log, "a");
    const args = [
      ...["-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"],
      ...["-Dzookeeper.admin.enableServer=false", "-Dzookeeper.4lw.commands.whitelist=*"],
      ...["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dzookeeper.extendedTypesEnabled=true"],
      ...this.#java,
      ...["-cp", classPath(), "org.apache.zookeeper.server.quorum.QuorumPeerMain"],
      join(this.#directory, "zoo.cfg"),
    ];
    this.#process = spawn("java", args, { stdio: ["ignore", log, log] });
    this.#process.on("error", () => {});
    closeSync(log);
  }

  /** It ended by itself; one that was killed here did not. */
  get hasEnded(): boolean {
    return this.#process !== undefined && this.#process.exitCode !== null;
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

  /** Loses its disk. It must not run. */
  async wipe(): Promise<void> {
    await rm(join(this.#directory, "data", "version-2"), { recursive: true, force: true });
  }

  /** Answer to one of the four-letter commands; `undefined` if there is none. */
  ask(command: string): Promise<string | undefined> {
    return new Promise((resolve) => {
      const socket = connect({ host: "127.0.0.1", port: this.port });
      let text = "";
      socket.setTimeout(1_000, () => socket.destroy());
      socket.on("connect", () => socket.write(command));
      socket.on("data", (chunk) => (text += chunk.toString()));
      socket.on("error", () => {});
      socket.on("close", () => resolve(text === "" ? undefined : text));
    });
  }

  /** `leader`, `follower`, `standalone`, `read-only`; `undefined` while it serves nobody. */
  async mode(): Promise<string | undefined> {
    return /^Mode: (\S+)/m.exec((await this.ask("srvr")) ?? "")?.[1];
  }
}

export class ZooKeeperServer {
  readonly members: readonly ZooKeeperMember[];
  readonly directory: string;
  readonly tls: TlsFiles | undefined;
  readonly tickMs: number;
  /** Ports that speak TLS, where there are some. */
  readonly securePorts: readonly number[];

  private constructor(
    members: readonly ZooKeeperMember[],
    directory: string,
    tickMs: number,
    secure: { tls: TlsFiles | undefined; ports: readonly number[] },
  ) {
    this.members = members;
    this.directory = directory;
    this.tickMs = tickMs;
    this.tls = secure.tls;
    this.securePorts = secure.ports;
  }

  /** Another process may take a port between its choice and its use: then all is tried again with others. */
  static async start(options: ZooKeeperServerOptions = {}): Promise<ZooKeeperServer> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await ZooKeeperServer.#start(options);
      } catch (error) {
        if (attempt === 3 || !/already in use|BindException/i.test(String(error))) throw error;
      }
    }
  }

  static async #start(options: ZooKeeperServerOptions): Promise<ZooKeeperServer> {
    const directory = await mkdtemp(join(tmpdir(), "conclave-zookeeper-"));
    const tls = options.tls === undefined ? undefined : await makeStores(directory);
    const count = options.members ?? 1;
    const tickMs = options.tickMs ?? 500;
    const ports = await freePorts(4 * count);
    const members = Array.from({ length: count }, (_, i) => {
      const java = [...(options.java ?? []), ...(tls === undefined ? [] : tlsOptions(directory, options))];
      return new ZooKeeperMember(i + 1, ports[4 * i]!, join(directory, `m${i + 1}`), java);
    });
    const securePorts = tls === undefined ? [] : members.map((_, i) => ports[4 * i + 3]!);
    const server = new ZooKeeperServer(members, directory, tickMs, { tls, ports: securePorts });
    try {
      for (const [i, member] of members.entries()) {
        const peers: string[] = [];
        for (const [j, { id }] of members.entries()) {
          const real = ports[4 * j + 1]!;
          const dialled = member.id === id ? undefined : await options.quorumPort?.(member.id, id, real);
          peers.push(`server.${id}=127.0.0.1:${dialled ?? real}:${ports[4 * j + 2]}`);
        }
        await server.#configure(member, {
          peers: count > 1 ? peers : [],
          secure: securePorts[i],
          more: options.config ?? [],
        });
        member.start();
      }
      await server.ready();
    } catch (error) {
      const logs = await Promise.all(members.map(({ log }) => readFile(log, "utf8").catch(() => "")));
      await server.stop();
      const said = logs.map((log, i) => `member ${i + 1}:\n${gist(log)}`).join("\n");
      throw new Error(`ZooKeeper did not start: ${String(error)}\n${said}`, { cause: error });
    }
    return server;
  }

  get hosts(): string[] {
    return this.members.map((member) => member.host);
  }

  async #configure(
    member: ZooKeeperMember,
    parts: { peers: readonly string[]; secure: number | undefined; more: readonly string[] },
  ): Promise<void> {
    const home = join(this.directory, `m${member.id}`);
    await mkdir(join(home, "data"), { recursive: true });
    await writeFile(join(home, "data", "myid"), String(member.id));
    const lines = [
      ...[`tickTime=${this.tickMs}`, "initLimit=20", "syncLimit=10", `dataDir=${join(home, "data")}`],
      ...[`clientPort=${member.port}`, "clientPortAddress=127.0.0.1", "maxClientCnxns=0"],
      ...(parts.secure === undefined
        ? []
        : [
            `secureClientPort=${parts.secure}`,
            "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
          ]),
      ...parts.peers,
      ...parts.more,
    ];
    await writeFile(join(home, "zoo.cfg"), `${lines.join("\n")}\n`);
  }

  /** Waits until every member that runs serves clients. */
  async ready(members: readonly ZooKeeperMember[] = this.members): Promise<void> {
    const until = performance.now() + 60_000;
    for (const member of members) {
      while ((await member.mode()) === undefined) {
        const ended = this.members.find(({ hasEnded }) => hasEnded);
        if (ended !== undefined) throw new Error(`member ${ended.id} has ended`);
        if (performance.now() > until) throw new Error(`member ${member.id} is not ready after 60 s`);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
  }

  /** The member that leads the ensemble. */
  async leader(): Promise<ZooKeeperMember> {
    const until = performance.now() + 60_000;
    while (performance.now() < until) {
      for (const member of this.members) if ((await member.mode()) === "leader") return member;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error("the ensemble has no leader");
  }

  async stop(): Promise<void> {
    await Promise.all(this.members.map((member) => member.kill()));
    await rm(this.directory, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** The lines of a log that say something; stacks are left out. */
function gist(log: string): string {
  const lines = log.split("\n").filter((line) => line !== "" && !/^\s+at /.test(line));
  return lines.slice(-12).join("\n").slice(-2_000);
}

/** PEM files as ZooKeeper reads them: certificate and key in one. */
async function makeStores(directory: string): Promise<TlsFiles> {
  const files = await makeCertificates(directory);
  const [certificate, key] = await Promise.all(
    ["server.pem", "server.key"].map((name) => readFile(join(directory, name), "utf8")),
  );
  await writeFile(join(directory, "keystore.pem"), `${certificate}${key}`);
  return files;
}

function tlsOptions(directory: string, { tls }: ZooKeeperServerOptions): string[] {
  return [
    `-Dzookeeper.ssl.keyStore.location=${join(directory, "keystore.pem")}`,
    `-Dzookeeper.ssl.trustStore.location=${join(directory, "ca.pem")}`,
    `-Dzookeeper.ssl.clientAuth=${tls === "mutual" ? "need" : "none"}`,
    "-Dzookeeper.ssl.hostnameVerification=false",
  ];
}
