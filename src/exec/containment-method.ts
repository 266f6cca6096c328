/** What this machine and this user allow for: asked once, by the watchdog when it starts. */
import { accessSync, constants } from "node:fs";
import { join } from "node:path";
import { cannotUse, ownCgroup } from "./cgroup.js";
import type { ContainmentKind } from "./containment.js";
import { hasProc, readLocksLimit } from "./procfs.js";
import { newLimitMark } from "./limit-mark.js";

/** What `--contain` may say. */
export const CONTAIN_CHOICES = ["auto", "cgroup", "scan"] as const;
export type ContainChoice = (typeof CONTAIN_CHOICES)[number];

export interface ContainmentMethod {
  readonly kind: ContainmentKind;
  /** With `cgroup`: where the cgroups of commands are made. */
  readonly cgroup: string | null;
  /** Whether commands are marked by a limit (limit-mark.ts). */
  readonly limits: boolean;
  /** Why nothing better could be had. */
  readonly why: string | null;
}

/** Asked for by name, a cgroup is used or nothing is: then this is an error, as text. */
export function chooseContainment(choice: ContainChoice): ContainmentMethod | string {
  const limits = hasProc() && findPrlimit() !== undefined && canMark();
  if (choice === "scan") return scan(limits, "--contain scan was asked for");
  const own = ownCgroup();
  const why = "why" in own ? own.why : cannotUse(own.directory);
  if (why === undefined && "directory" in own)
    return { kind: "cgroup", cgroup: own.directory, limits, why: null };
  return choice === "cgroup" ? `--contain cgroup: ${why}` : scan(limits, why ?? "");
}

function scan(limits: boolean, why: string): ContainmentMethod {
  if (!hasProc()) return { kind: "group", cgroup: null, limits: false, why: "this system has no /proc" };
  return { kind: "scan", cgroup: null, limits, why };
}

/** One line for people: what contains the command. */
export function describeContainment({ kind, cgroup, limits, why }: ContainmentMethod): string {
  const reason = why === null ? "" : ` (no cgroup: ${why})`;
  switch (kind) {
    case "cgroup":
      return `the command is contained by a cgroup in ${cgroup}`;
    case "scan":
      return limits
        ? `the command is contained by tracking its processes in /proc${reason}`
        : `the command is contained by tracking its processes in /proc by their environment only: prlimit is not usable here${reason}`;
    case "group":
      return `only the process group of the command is known, because ${why}: processes that leave it are not ended`;
  }
}

/** The program of util-linux that sets limits, as a path. */
export function findPrlimit(): string | undefined {
  const path = process.env["PATH"] ?? "/usr/bin:/bin";
  return path
    .split(":")
    .filter((directory) => directory.startsWith("/"))
    .map((directory) => join(directory, "prlimit"))
    .find(isExecutable);
}

function canMark(): boolean {
  const inherited = readLocksLimit("self");
  return (inherited === null || typeof inherited === "bigint") && newLimitMark(inherited) !== undefined;
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
