/**
 * Containment by cgroup v2: what a process of the cgroup starts is in it too,
 * whatever it does to its group, session or environment, and the kernel kills all
 * of it at one stroke (`cgroup.kill`, Linux 5.14). It takes the right to write to
 * our own cgroup: root has it, other users where it was delegated to them.
 */
import { mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { probe } from "./signals.js";

const NAME = /^conclave-(\d+)-/;

/** The cgroup this process is in, as a directory; or why there is none to use. */
export function ownCgroup(): { readonly directory: string } | { readonly why: string } {
  let mounts: string;
  let membership: string;
  try {
    mounts = readFileSync("/proc/self/mountinfo", "utf8");
    membership = readFileSync("/proc/self/cgroup", "utf8");
  } catch {
    return { why: "this system has no cgroups" };
  }
  const path = /^0::(\/.*)$/m.exec(membership)?.[1];
  const mount = mounts.split("\n").find((line) => / - cgroup2 /.test(line));
  const [root, point] = mount?.split(" ").slice(3, 5).map(unescaped) ?? [];
  if (path === undefined || root === undefined || point === undefined)
    return { why: "cgroup v2 is not mounted" };
  // In a container the mount may show only a part of the hierarchy.
  if (root !== "/" && path !== root && !path.startsWith(`${root}/`))
    return { why: "our cgroup is outside what is mounted" };
  return { directory: join(point, root === "/" ? path : path.slice(root.length)) };
}

/** Tries all that a run needs. Returns why it cannot be done, or `undefined`. */
export function cannotUse(parent: string): string | undefined {
  const cgroup = new Cgroup(join(parent, cgroupName("probe")));
  try {
    removeLeftovers(parent);
    cgroup.create();
    cgroup.launch(() => {});
    readFileSync(join(cgroup.directory, "cgroup.events"));
    // Nobody is inside: this only tells whether the kernel knows it.
    cgroup.kill();
    return undefined;
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "error";
    return `${parent} cannot be used: ${code}`;
  } finally {
    cgroup.remove();
  }
}

/** Unique, and names its creator, so that the cgroup of a killed watchdog can be removed. */
export function cgroupName(run: string, owner = process.pid): string {
  return `conclave-${owner}-${run}`;
}

export class Cgroup {
  readonly directory: string;

  constructor(directory: string) {
    this.directory = directory;
  }

  create(): void {
    mkdirSync(this.directory);
  }

  /**
   * Runs `start`, so that what it forks is in the cgroup from its first instruction: a process is born into the
   * cgroup of the one that forks it. So we enter, fork, and leave.
   */
  launch<T>(start: () => T): T {
    this.#move(this.directory);
    try {
      return start();
    } finally {
      this.#leave();
    }
  }

  /** Throws if the kernel refuses, and if there is no such cgroup. */
  kill(): void {
    writeFileSync(join(this.directory, "cgroup.kill"), "1");
  }

  /** Whether a process lives in it or below it. Zombies do not count. */
  populated(): boolean {
    try {
      return /^populated 1$/m.test(readFileSync(join(this.directory, "cgroup.events"), "latin1"));
    } catch {
      return false;
    }
  }

  /** Removes it, and what nested commands have left in it. Only where nothing lives. */
  remove(): void {
    removeTree(this.directory);
  }

  #leave(): void {
    try {
      this.#move(join(this.directory, ".."));
    } catch {
      // A watchdog that shares the cgroup of its command cannot kill one without the other: end both, the wrapper sees it.
      this.kill();
    }
  }

  #move(directory: string): void {
    writeFileSync(join(directory, "cgroup.procs"), "0");
  }
}

function removeTree(directory: string): void {
  try {
    for (const entry of readdirSync(directory, { withFileTypes: true }))
      if (entry.isDirectory()) removeTree(join(directory, entry.name));
    rmdirSync(directory);
  } catch {
    // Gone already, or something lives in it; then the next one here tries again.
  }
}

/** Empty cgroups whose makers were killed. */
function removeLeftovers(parent: string): void {
  for (const name of readdirSync(parent)) {
    const owner = NAME.exec(name)?.[1];
    if (owner !== undefined && probe(Number(owner)) === "gone") removeTree(join(parent, name));
  }
}

/** Mount tables write spaces and the like in octal. */
function unescaped(text: string): string {
  return text.replaceAll(/\\([0-7]{3})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 8)),
  );
}
