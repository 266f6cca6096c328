/** Candidates of other programs in the same election: Curator and kazoo, each in a process of its own. */
import { type ChildProcess, execFile, spawn, spawnSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { ROOT } from "../shape/sources.js";
import { until } from "./until.js";
import { classPath, hasCurator } from "./zookeeper-command.js";

export type PeerKind = "latch" | "selector" | "mutex" | "kazoo";

/** Also when run from the build directory, by a bench. */
const PROGRAMS = join(ROOT.replace(/\.build\/?$/, ""), "test/zookeeper/programs");
const PYTHON = "/usr/bin/python3";

export function hasPeer(kind: PeerKind): boolean {
  if (kind !== "kazoo") return hasCurator();
  return spawnSync(PYTHON, ["-c", "import kazoo"], { stdio: "ignore" }).status === 0;
}

/** Directory with the compiled program. Removed by the caller. */
export async function compileCurator(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "conclave-curator-"));
  const source = join(PROGRAMS, "CuratorPeer.java");
  await promisify(execFile)("javac", ["-nowarn", "-d", directory, "-cp", classPath(), source]);
  return directory;
}

export async function removeCompiled(directory: string | undefined): Promise<void> {
  if (directory !== undefined) await rm(directory, { recursive: true, force: true });
}

export class Peer {
  readonly id: string;
  readonly #process: ChildProcess;
  #leading = false;
  #ready = false;
  #out = true;
  #who: string | undefined;
  #dead = false;
  /** Called when it says that it leads, at once. */
  onLeading: () => void = () => {};

  constructor(
    kind: PeerKind,
    parts: { hosts: string; path: string; id: string; classes: string | undefined },
  ) {
    const { hosts, path, id, classes } = parts;
    this.id = id;
    this.#process =
      kind === "kazoo"
        ? spawn(PYTHON, [join(PROGRAMS, "kazoo-peer.py"), hosts, path, id], {
            stdio: ["pipe", "pipe", "ignore"],
          })
        : spawn(
            "java",
            [
              ...["-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", classPath(classes!)],
              ...["-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "CuratorPeer", hosts, path, id, kind],
            ],
            { stdio: ["pipe", "pipe", "ignore"] },
          );
    this.#process.stdin!.on("error", () => {});
    createInterface({ input: this.#process.stdout! }).on("line", (line) => this.#said(line));
  }

  /** By its own events. It says that it resigns before it does. */
  get leading(): boolean {
    return this.#leading && !this.#dead;
  }

  async ready(): Promise<void> {
    await until(() => this.#ready, 60_000);
  }

  stand(): void {
    this.#out = false;
    this.#send("stand");
  }

  async resign(): Promise<void> {
    this.#send("resign");
    await until(() => this.#out, 20_000);
  }

  /** Who leads, as it sees it. */
  async who(): Promise<string> {
    this.#who = undefined;
    this.#send("who");
    await until(() => this.#who !== undefined, 20_000);
    return this.#who!;
  }

  /** SIGKILL. From here on it does nothing any more. */
  async kill(): Promise<void> {
    const gone = new Promise((resolve) => this.#process.once("exit", resolve));
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    this.#process.kill("SIGKILL");
    await gone;
    this.#dead = true;
  }

  #send(line: string): void {
    this.#process.stdin!.write(`${line}\n`);
  }

  #said(line: string): void {
    if (line === "ready") this.#ready = true;
    else if (line === "leading") {
      this.#leading = true;
      this.onLeading();
    } else if (line === "lost" || line === "resigning") this.#leading = false;
    else if (line === "out") this.#out = true;
    else if (line.startsWith("who ")) this.#who = line.slice(4);
  }
}
