/**
 * Which processes must be dead before a will may be executed, and whether they
 * are. Certain means: by the same kernel, in the same pid namespace, the pid is
 * gone, or belongs to a process that was started at another time, or is that of
 * a process that has ended and was not waited for.
 */
import { readFileSync, readlinkSync } from "node:fs";

/** One process, as its pid may be given to another later. */
export interface ListedProcess {
  readonly pid: number;
  /** In ticks since boot; `null` where the system does not tell. */
  readonly started: string | null;
}

/** Where pids mean what they say. `null`: this system does not tell. */
export interface Place {
  readonly bootId: string | null;
  readonly pidNamespace: string | null;
}

export function here(): Place {
  return {
    bootId: attempt(() => readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim()),
    pidNamespace: attempt(() => readlinkSync("/proc/self/ns/pid")),
  };
}

export function listed(pid: number): ListedProcess {
  return { pid, started: stat(pid)?.started ?? null };
}

/** `true` only if it is certain. */
export function isDead({ pid, started }: ListedProcess): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "ESRCH") return true;
    if (code !== "EPERM") return false;
  }
  const now = stat(pid);
  if (now === null || started === null) return false;
  return now.started !== started || now.ended;
}

interface Stat {
  readonly started: string;
  /** A zombie, all of whose threads have ended. */
  readonly ended: boolean;
}

function stat(pid: number): Stat | null {
  const text = attempt(() => readFileSync(`/proc/${pid}/stat`, "latin1"));
  if (text === null) return null;
  // The name in parentheses may itself hold spaces and parentheses: count from the last one.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const [state] = fields;
  const started = fields[19];
  if (started === undefined || !/^[0-9]{1,20}$/.test(started)) return null;
  return { started, ended: state === "X" || (state === "Z" && Number(fields[17]) <= 1) };
}

function attempt(read: () => string): string | null {
  try {
    return read();
  } catch {
    return null;
  }
}
