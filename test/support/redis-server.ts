/**
 * Redis for tests: one server on a free loopback port, in a directory of its own,
 * with or without password, TLS and a clock that can be set. Nothing is left behind.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { closeSync, existsSync, openSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { makeCertificates } from "./certificates.js";
import { freePorts } from "./free-ports.js";
import { redisCommand } from "./redis-command.js";

export { hasRedis } from "./redis-command.js";

const run = promisify(execFile);
const FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";
/** Redis is linked with jemalloc, which asks for the time before libfaketime is ready: libc's own allocator goes before it. */
const LIBC = "/lib/x86_64-linux-gnu/libc.so.6";

export interface RedisServerOptions {
  readonly password?: string;
  /** Lines for an ACL file: `user jobs on >secret …`. */
  readonly acl?: readonly string[];
  readonly tls?: boolean;
  /** Starts it with its clock set back by this much; {@link RedisServer.step} sets it. */
  readonly behindMs?: number;
  /** More of its configuration: `["--maxmemory", "2mb"]`. */
  readonly args?: readonly string[];
}

export class RedisServer {
  readonly port: number;
  readonly directory: string;
  readonly options: RedisServerOptions;
  #process: ChildProcess | undefined;
  #offsetMs: number;

  private constructor(port: number, directory: string, options: RedisServerOptions) {
    this.port = port;
    this.directory = directory;
    this.options = options;
    this.#offsetMs = -(options.behindMs ?? 0);
  }

  static async start(options: RedisServerOptions = {}): Promise<RedisServer> {
    const directory = await mkdtemp(join(tmpdir(), "conclave-redis-"));
    const [port] = await freePorts(1);
    const server = new RedisServer(port!, directory, options);
    try {
      if (options.tls === true) await makeCertificates(directory);
      if (options.acl !== undefined)
        await writeFile(
          join(directory, "users.acl"),
          `user default on nopass ~* &* +@all\n${options.acl.join("\n")}\n`,
        );
      await server.launch();
    } catch (error) {
      const log = await readFile(join(directory, "log"), "utf8").catch(() => "");
      await server.stop();
      throw new Error(`Redis did not start: ${String(error)}\n${log.slice(-2000)}`, { cause: error });
    }
    return server;
  }

  get url(): string {
    const { password, tls } = this.options;
    const user = password === undefined ? "" : `:${password}@`;
    const query = tls === true ? `?ca=${encodeURIComponent(join(this.directory, "ca.pem"))}` : "";
    return `redis${tls === true ? "s" : ""}://${user}127.0.0.1:${this.port}${query}`;
  }

  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** Starts the process (again), with the data that is in its directory. */
  async launch(): Promise<void> {
    const { password, acl, tls, behindMs, args = [] } = this.options;
    if (behindMs !== undefined) await this.#setClock();
    const log = openSync(join(this.directory, "log"), "a");
    const file = (name: string): string => join(this.directory, name);
    this.#process = spawn(
      redisCommand("redis-server"),
      [
        ...["--bind", "127.0.0.1", "--dir", this.directory, "--save", "", "--daemonize", "no"],
        ...(tls === true
          ? ["--port", "0", "--tls-port", String(this.port), "--tls-cert-file", file("server.pem")]
          : ["--port", String(this.port)]),
        ...(tls === true ? ["--tls-key-file", file("server.key"), "--tls-ca-cert-file", file("ca.pem")] : []),
        ...(tls === true ? ["--tls-auth-clients", "no"] : []),
        ...(password === undefined ? [] : ["--requirepass", password]),
        ...(acl === undefined ? [] : ["--aclfile", file("users.acl")]),
        ...args,
      ],
      {
        stdio: ["ignore", log, log],
        env: behindMs === undefined ? process.env : { ...process.env, ...this.#clockEnvironment() },
      },
    );
    this.#process.on("error", () => {});
    closeSync(log);
    await this.ready();
  }

  /** Waits until it answers. */
  async ready(): Promise<void> {
    const until = performance.now() + 20_000;
    for (;;) {
      const answer = await this.cli("PING").catch(String);
      if (answer === "PONG") return;
      if (performance.now() > until) throw new Error(`Redis does not answer: ${answer}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /** Sets its clock, forward if positive. Needs `behindMs`. */
  async step(ms: number): Promise<void> {
    this.#offsetMs += ms;
    await this.#setClock();
    // libfaketime reads the file anew when the next time is asked for.
    await this.cli("TIME");
  }

  /** Runs redis-cli with one command. The password goes by the environment. */
  async cli(...args: string[]): Promise<string> {
    const tls = this.options.tls === true ? ["--tls", "--cacert", join(this.directory, "ca.pem")] : [];
    const { stdout } = await run(
      redisCommand("redis-cli"),
      ["-h", "127.0.0.1", "-p", String(this.port), ...tls, "--no-auth-warning", ...args],
      {
        env: { ...process.env, ...(this.options.password && { REDISCLI_AUTH: this.options.password }) },
        timeout: 10_000,
      },
    );
    return stdout.trim();
  }

  signal(signal: NodeJS.Signals): void {
    this.#process?.kill(signal);
  }

  /** Ends the process, however stuck it is, and waits for it. Its directory stays. */
  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGCONT");
    child.kill(signal);
    await gone;
  }

  async stop(): Promise<void> {
    await this.kill();
    await rm(this.directory, { recursive: true, force: true });
  }

  async #setClock(): Promise<void> {
    const seconds = (this.#offsetMs / 1000).toFixed(3);
    await writeFile(join(this.directory, "clock"), `${this.#offsetMs < 0 ? "" : "+"}${seconds}\n`);
  }

  #clockEnvironment(): Record<string, string> {
    return {
      LD_PRELOAD: `${FAKETIME}:${LIBC}`,
      FAKETIME_TIMESTAMP_FILE: join(this.directory, "clock"),
      FAKETIME_NO_CACHE: "1",
      // Monotonic time goes on: only dates are set, as an operator or NTP does.
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
    };
  }
}

/** Whether a clock can be set: Debian's package faketime. */
export function hasFaketime(): boolean {
  return existsSync(FAKETIME) && existsSync(LIBC);
}
