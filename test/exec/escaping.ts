/** A command that tries to get away, users that are not root, and cgroups that are theirs. */
import { spawn, spawnSync } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ownCgroup } from "../../src/exec/cgroup.js";
import { ROOT } from "../shape/sources.js";
import type { Subject } from "./faults.js";
import { scratch, until } from "./wrapped.js";

const source = (name: string): string => join(ROOT, "test/exec/programs", name);

export const ESCAPING: Subject = {
  generations: 6,
  words: (beats, host) => ["perl", source("escaping.pl"), beats, host],
};

/** The same in a pid namespace, by the words of the guide. */
export const NAMESPACED: Subject = {
  generations: ESCAPING.generations,
  words: (beats, host) => [...NAMESPACE, ...ESCAPING.words(beats, host)],
};
const NAMESPACE = ["unshare", "--user", "--map-current-user", "--pid", "--fork", "--kill-child"];

/** Nobody in particular: a number that owns nothing on a usual machine. */
const OTHER_USER = 54_321;

/** Why commands cannot be run as another user here; `undefined` if they can. */
export function lackingUsers(): string | undefined {
  if (process.platform !== "linux") return "needs Linux";
  if (process.getuid?.() !== 0) return "needs root, to become another user";
  for (const command of ["perl", "setpriv", "prlimit"]) {
    if (spawnSync("sh", ["-c", `command -v ${command}`]).status !== 0) return `${command} is not installed`;
  }
  // Below a home directory that others may not enter, no other user can run what is tested.
  const reads = spawnSync("setpriv", [...asOther().slice(1), "test", "-r", source("escaping.pl")]);
  return reads.status === 0 ? undefined : "this checkout is not readable for other users";
}

/** Whether that user may make namespaces here. */
export function hasNamespaces(): boolean {
  const [file, ...args] = [...asOther(), ...NAMESPACE, "true"];
  return spawnSync(file, args).status === 0;
}

/** Words that run what follows as a user who is not root. */
export function asOther(): string[] {
  return ["setpriv", `--reuid=${OTHER_USER}`, `--regid=${OTHER_USER}`, "--clear-groups"];
}

/** A directory for that user, and in it a file for heart beats, which the test reads. */
export function scratchForOther(): { readonly directory: string; readonly beats: string } {
  const directory = scratch();
  const beats = join(directory, "beats");
  writeFileSync(beats, "");
  chmodSync(directory, 0o755);
  for (const path of [directory, beats]) chownSync(path, OTHER_USER, OTHER_USER);
  return { directory, beats };
}

/** A cgroup that was delegated to that user. */
export class DelegatedCgroup {
  readonly #directory: string;

  constructor(name: string) {
    const own = ownCgroup();
    if ("why" in own) throw new Error(own.why);
    this.#directory = join(own.directory, `delegated-${process.pid}-${name}`);
    mkdirSync(this.#directory);
    for (const file of ["", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control"])
      chownSync(join(this.#directory, file), OTHER_USER, OTHER_USER);
  }

  /** Words that run what follows in it, as the user it belongs to. */
  get through(): string[] {
    const enter = 'echo 0 >"$1/cgroup.procs" && shift && exec "$@"';
    return ["sh", "-c", enter, "sh", this.#directory, ...asOther()];
  }

  /** Once all that ran in it has ended. What is left in it of its making is a failure. */
  async remove(): Promise<void> {
    await until(() => /populated 0/.test(readFileSync(join(this.#directory, "cgroup.events"), "utf8")));
    rmdirSync(this.#directory);
  }
}

/** Thousands of processes that do nothing, so that reading all of /proc takes long. */
export class Crowd {
  readonly #parent: ChildProcess;

  private constructor(parent: ChildProcess) {
    this.#parent = parent;
  }

  static async open(size: number): Promise<Crowd> {
    const parent = spawn("perl", [source("crowd.pl"), String(size)], {
      stdio: ["ignore", "pipe", "inherit"],
      env: { PATH: process.env["PATH"] },
    });
    await new Promise<void>((resolve, reject) => {
      parent.stdout.once("data", () => resolve());
      parent.once("exit", () => reject(new Error("the crowd could not be started")));
    });
    return new Crowd(parent);
  }

  async close(): Promise<void> {
    const gone = new Promise((resolve) => this.#parent.once("exit", resolve));
    this.#parent.kill("SIGKILL");
    await gone;
  }
}
