/**
 * PostgreSQL for tests: on a free loopback port, in a directory of its own, with
 * or without password, TLS, a standby and a clock that can be set. Nothing is
 * left behind.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { closeSync, existsSync, openSync } from "node:fs";
import { appendFile, chmod, chown, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { makeCertificates } from "./certificates.js";
import { freePorts } from "./free-ports.js";
import { postgresCommand, serverUser } from "./postgres-command.js";

export { hasPostgres } from "./postgres-command.js";

const run = promisify(execFile);
const FAKETIME = [
  "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
  "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
];
const user = serverUser();

export interface PostgresOptions {
  /** Of the superuser `postgres`; without one everybody is let in. */
  readonly password?: string;
  readonly tls?: boolean;
  /** Lines for postgresql.conf. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Where its directory is made. Default: where temporary files go. */
  readonly home?: string | undefined;
  /** Whether its clock can be set ({@link PostgresServer.step}). */
  readonly steps?: boolean;
}

/** Whether a server can be started whose clock can be set. */
export const canStep = FAKETIME.some((path) => existsSync(path));

export class PostgresServer {
  readonly directory: string;
  readonly port: number;
  readonly options: PostgresOptions;
  readonly ca: string | undefined;
  #process: ChildProcess | undefined;
  #offsetMs = 0;

  private constructor(directory: string, port: number, options: PostgresOptions, ca: string | undefined) {
    this.directory = directory;
    this.port = port;
    this.options = options;
    this.ca = ca;
  }

  static async start(options: PostgresOptions = {}): Promise<PostgresServer> {
    const [port = 0] = await freePorts(1);
    const directory = await makeDirectory(options.home);
    const ca = options.tls === true ? (await makeCertificates(directory)).ca : undefined;
    const server = new PostgresServer(directory, port, options, ca);
    try {
      await server.#initialise();
      await server.begin();
      return server;
    } catch (error) {
      const log = await readFile(join(directory, "log"), "utf8").catch(() => "");
      await server.stop();
      throw new Error(`PostgreSQL did not start: ${String(error)}\n${log.slice(-2000)}`, { cause: error });
    }
  }

  /** A server that follows this one. */
  async standby(settings: Readonly<Record<string, string>> = {}): Promise<PostgresServer> {
    const [port = 0] = await freePorts(1);
    const directory = await makeDirectory();
    const standby = new PostgresServer(directory, port, { ...this.options, settings }, this.ca);
    const name = settings["cluster_name"] ?? "standby";
    await runAs(postgresCommand("pg_basebackup"), [
      ...["-D", join(directory, "data"), "-R", "-X", "stream", "-c", "fast"],
      ...["-d", `host=127.0.0.1 port=${this.port} user=postgres application_name=${name}`],
    ]);
    await standby.#configure({ ...settings, port: String(port) });
    await standby.begin();
    return standby;
  }

  get data(): string {
    return join(this.directory, "data");
  }

  get pid(): number | undefined {
    return this.#process?.pid;
  }

  url(more = ""): string {
    const password =
      this.options.password === undefined ? "" : `:${encodeURIComponent(this.options.password)}`;
    return `postgres://postgres${password}@127.0.0.1:${this.port}/postgres${more}`;
  }

  /** Runs statements behind the back of what is tested. */
  async sql<R extends pg.QueryResultRow>(
    text: string,
    values?: unknown[],
    database = "postgres",
  ): Promise<R[]> {
    const client = await this.client(database);
    try {
      return (await client.query<R>(text, values)).rows;
    } finally {
      await client.end();
    }
  }

  async client(database = "postgres", as = "postgres"): Promise<pg.Client> {
    const client = new pg.Client({
      host: "127.0.0.1",
      port: this.port,
      user: as,
      database,
      password: this.options.password,
      ssl: this.ca === undefined ? false : { ca: await readFile(this.ca, "utf8") },
      connectionTimeoutMillis: 5_000,
    });
    client.on("error", () => {});
    await client.connect();
    return client;
  }

  /** Starts the process, and waits until it answers. */
  async begin(): Promise<void> {
    const log = openSync(join(this.directory, "log"), "a");
    const child = spawn(postgresCommand("postgres"), ["-D", this.data], {
      ...user,
      stdio: ["ignore", log, log],
      env: {
        PATH: process.env["PATH"],
        LC_ALL: "C.UTF-8",
        ...(this.options.steps === true && this.#faketime()),
      },
    });
    closeSync(log);
    child.on("error", () => {});
    this.#process = child;
    await this.ready();
  }

  async ready(limitMs = 30_000): Promise<void> {
    const until = performance.now() + limitMs;
    for (;;) {
      const child = this.#process;
      if (child === undefined || child.exitCode !== null) throw new Error("PostgreSQL has ended");
      try {
        await this.sql("SELECT 1");
        return;
      } catch (error) {
        if (performance.now() > until) throw error;
        await new Promise((resolve) => setTimeout(resolve, 30));
      }
    }
  }

  async promote(): Promise<void> {
    await this.sql("SELECT pg_promote(true, 30)");
  }

  /** Its clock is this much further on from now on. */
  async step(ms: number): Promise<void> {
    this.#offsetMs += ms;
    const path = join(this.directory, "clock");
    await writeFile(`${path}.new`, offset(this.#offsetMs));
    await chmod(`${path}.new`, 0o644);
    await rename(`${path}.new`, path);
  }

  signal(signal: NodeJS.Signals): void {
    this.#process?.kill(signal);
  }

  /** Ends the process without a farewell, as a crash does; its data stays. */
  async kill(signal: NodeJS.Signals = "SIGQUIT"): Promise<void> {
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
    await rm(this.directory, { recursive: true, force: true, maxRetries: 5 });
  }

  async #initialise(): Promise<void> {
    const { password, tls, settings } = this.options;
    const secret = join(this.directory, "password");
    if (password !== undefined) {
      await writeFile(secret, password);
      await own(secret);
    }
    await runAs(postgresCommand("initdb"), [
      ...["-D", this.data, "-U", "postgres", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"],
      ...(password === undefined ? ["-A", "trust"] : ["-A", "scram-sha-256", "--pwfile", secret]),
    ]);
    if (tls === true) await this.#takeCertificate();
    await this.#configure({ ...settings, ...(tls === true && TLS), port: String(this.port) });
    if (tls === true)
      await writeFile(
        join(this.data, "pg_hba.conf"),
        "hostssl all all 127.0.0.1/32 " + (password === undefined ? "trust\n" : "scram-sha-256\n"),
      );
  }

  async #takeCertificate(): Promise<void> {
    for (const name of ["server.pem", "server.key"]) {
      const path = join(this.data, name);
      await writeFile(path, await readFile(join(this.directory, name)), { mode: 0o600 });
      await own(path);
    }
  }

  async #configure(settings: Readonly<Record<string, string>>): Promise<void> {
    const all = { ...DEFAULTS, ...settings };
    const lines = Object.entries(all).map(([name, value]) => `${name} = '${value.replaceAll("'", "''")}'\n`);
    await appendFile(join(this.data, "postgresql.conf"), lines.join(""));
  }

  #faketime(): Record<string, string> {
    return {
      LD_PRELOAD: FAKETIME.find((path) => existsSync(path)) ?? "",
      FAKETIME_TIMESTAMP_FILE: join(this.directory, "clock"),
      FAKETIME_NO_CACHE: "1",
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
      DONT_FAKE_MONOTONIC: "1",
    };
  }
}

/** Quick, and safe enough: a process that is killed does not take the kernel's memory with it. */
const DEFAULTS = {
  listen_addresses: "127.0.0.1",
  unix_socket_directories: "",
  fsync: "off",
  full_page_writes: "off",
  shared_buffers: "16MB",
  max_wal_size: "128MB",
  wal_level: "replica",
  hot_standby: "on",
  max_wal_senders: "5",
  timezone: "UTC",
};

const TLS = { ssl: "on", ssl_cert_file: "server.pem", ssl_key_file: "server.key" };

/** As libfaketime reads it. */
function offset(ms: number): string {
  return `${ms < 0 ? "-" : "+"}${(Math.abs(ms) / 1000).toFixed(3)}s\n`;
}

async function makeDirectory(home = tmpdir()): Promise<string> {
  const directory = await mkdtemp(join(home, "conclave-postgres-"));
  await own(directory);
  return directory;
}

async function own(path: string): Promise<void> {
  if (user !== undefined) await chown(path, user.uid, user.gid);
}

async function runAs(command: string, args: readonly string[]): Promise<void> {
  await run(command, [...args], { ...user, cwd: "/", env: { PATH: process.env["PATH"], LC_ALL: "C.UTF-8" } });
}
