/**
 * deploy/Dockerfile, really built and run: podman with runc, on a base that is made by debootstrap where no registry is asked.
 * All of podman's own files are in a directory of the test. The base is kept in artifacts/, for the next run.
 */
import { execFile, execFileSync, spawn, spawnSync } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { createInterface } from "node:readline";
import { ROOT } from "../shape/sources.js";

const run = promisify(execFile);
const NEEDS = ["podman", "runc", "debootstrap"];
const BASE = join(ROOT, "artifacts/image-base");
const LINE_MS = 30_000;

/** Why nothing can be said about the image here; `undefined`: it can. Installs what is missing, where that is allowed. */
export function unable(): string | undefined {
  if (process.env["CONCLAVE_LONG"] !== "1") return "it takes minutes: CONCLAVE_LONG=1 runs it";
  if (process.platform !== "linux" || process.getuid?.() !== 0) return "it needs Linux, as root";
  spawnSync(join(ROOT, "scripts/servers/install"), NEEDS, { stdio: "inherit" });
  const absent = NEEDS.filter((command) => spawnSync(command, ["--version"]).status !== 0);
  return absent.length === 0 ? undefined : `not installed: ${absent.join(", ")}`;
}

export class Podman {
  readonly #home = mkdtempSync(join(tmpdir(), "conclave-podman-"));
  readonly #containers = new Set<Container>();

  #args(...words: string[]): string[] {
    const where = ["--root", join(this.#home, "root"), "--runroot", join(this.#home, "run")];
    return [
      ...where,
      "--tmpdir",
      join(this.#home, "tmp"),
      "--runtime",
      "runc",
      "--cgroup-manager",
      "cgroupfs",
      ...words,
    ];
  }

  async podman(...words: string[]): Promise<string> {
    const { stdout } = await run("podman", this.#args(...words), { maxBuffer: 1 << 26 });
    return stdout.trim();
  }

  /** The base as an image, from a folder that is made once. */
  async base(): Promise<string> {
    if (!existsSync(BASE)) {
      mkdirSync(join(ROOT, "artifacts"), { recursive: true });
      const half = mkdtempSync(`${BASE}-`);
      await run(join(ROOT, "scripts/servers/image-base"), [half], { maxBuffer: 1 << 26 });
      renameSync(half, BASE);
    }
    const tar = join(this.#home, "base.tar");
    execFileSync("tar", ["-C", BASE, "-cf", tar, "."]);
    const own = existsSync(join(BASE, "etc/ssl/certs/machine.pem"));
    const certificates = own ? ["--change", "ENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/machine.pem"] : [];
    await this.podman("import", "--quiet", ...certificates, tar, "localhost/conclave-base:1");
    rmSync(tar);
    return "localhost/conclave-base:1";
  }

  async build(): Promise<string> {
    const base = await this.base();
    const how = [
      "--isolation",
      "chroot",
      "--network",
      "host",
      "--format",
      "docker",
      "--build-arg",
      `BASE=${base}`,
    ];
    await this.podman(
      "build",
      ...how,
      "-t",
      "localhost/conclave:1",
      "-f",
      join(ROOT, "deploy/Dockerfile"),
      ROOT,
    );
    return "localhost/conclave:1";
  }

  /** A container of the image, as `docker run` would start it: not root, nothing to write to but /tmp. */
  start(name: string, args: readonly string[], options: readonly string[] = []): Container {
    const limits = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096", "--network", "host"];
    const hard = ["--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"];
    const words = [
      "run",
      "--rm",
      "--name",
      name,
      ...limits,
      ...hard,
      ...options,
      "localhost/conclave:1",
      ...args,
    ];
    const container = new Container(
      this,
      name,
      spawn("podman", this.#args(...words), { stdio: ["ignore", "pipe", "pipe"] }),
    );
    this.#containers.add(container);
    return container;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const container of this.#containers) await container.end();
    await this.podman("rm", "--all", "--force", "--time", "0").catch(() => undefined);
    await this.podman("rmi", "--all", "--force").catch(() => undefined);
    spawnSync("umount", [join(this.#home, "root/overlay")]);
    rmSync(this.#home, { recursive: true, force: true, maxRetries: 10 });
  }
}

export class Container {
  readonly out: string[] = [];
  readonly err: string[] = [];
  readonly exit: Promise<number | null>;
  readonly #podman: Podman;
  readonly #name: string;
  readonly #child: ChildProcess;
  readonly #looks = new Set<() => void>();
  #ended = false;

  constructor(podman: Podman, name: string, child: ChildProcess) {
    this.#podman = podman;
    this.#name = name;
    this.#child = child;
    for (const [stream, lines] of [
      [child.stdout!, this.out],
      [child.stderr!, this.err],
    ] as const)
      createInterface({ input: stream }).on("line", (line) => {
        lines.push(line);
        for (const look of this.#looks) look();
      });
    this.exit = new Promise((resolve) =>
      child.once("close", (code) => {
        this.#ended = true;
        for (const look of this.#looks) look();
        resolve(code);
      }),
    );
  }

  get said(): string {
    return [...this.out, ...this.err].join("\n");
  }

  /** The first line of either stream that fits, from the `from`th line of each on. */
  line(fits: RegExp, from = 0): Promise<string> {
    return new Promise((resolve, reject) => {
      const finish = (settle: () => void): void => {
        clearTimeout(timer);
        this.#looks.delete(look);
        settle();
      };
      const fail = (why: string): void =>
        finish(() =>
          reject(new Error(`${this.#name}: ${why} without ${String(fits)}; it said:\n${this.said}`)),
        );
      const look = (): void => {
        const found = [...this.out.slice(from), ...this.err.slice(from)].find((line) => fits.test(line));
        if (found !== undefined) finish(() => resolve(found));
        else if (this.#ended) fail("it ended");
      };
      const timer = setTimeout(() => fail(`${LINE_MS} ms passed`), LINE_MS);
      this.#looks.add(look);
      look();
    });
  }

  /** As `docker stop` does: SIGTERM, and SIGKILL after 20 s. */
  async stop(): Promise<number | null> {
    await this.#podman.podman("stop", "--time", "20", this.#name);
    return this.exit;
  }

  async kill(signal = "KILL"): Promise<void> {
    await this.#podman.podman("kill", "--signal", signal, this.#name);
  }

  async exec(...words: string[]): Promise<string> {
    return this.#podman.podman("exec", this.#name, ...words);
  }

  /** What the image's HEALTHCHECK says now: `undefined` is healthy. */
  async ill(): Promise<string | undefined> {
    return this.#podman.podman("healthcheck", "run", this.#name).then(
      () => undefined,
      async () =>
        this.exec("node", "/app/healthcheck.mjs").catch((error: { stdout: string }) => error.stdout.trim()),
    );
  }

  async end(): Promise<void> {
    if (!this.#ended) await this.kill().catch(() => this.#child.kill("SIGKILL"));
    await this.exit;
  }
}
