/** What /proc says about processes. Linux only: {@link hasProc} is asked first. */
import { readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";

/** Holds the marks of every `exec` a process runs under, the innermost last. */
export const MARK_VARIABLE = "CONCLAVE_EXEC";

export interface Stat {
  /** A zombie does nothing more, and where process 1 reaps nobody it stays: it counts as ended. */
  readonly dead: boolean;
  readonly parent: number;
  readonly pgrp: number;
  readonly session: number;
  /** In ticks since boot. */
  readonly started: number;
}

/** `denied`: the process exists, but we may not read this about it. */
export type Unread = "gone" | "denied";

let proc: boolean | undefined;

/** Whether there is a /proc, and of our own pid namespace: another one would describe other processes. */
export function hasProc(): boolean {
  try {
    proc ??= readlinkSync("/proc/self") === String(process.pid);
  } catch {
    proc = false;
  }
  return proc;
}

let hides: boolean | undefined;

/** Whether /proc is mounted with `hidepid`: then what it does not show may exist, also an undumpable process of our own user. */
export function hidesProcesses(): boolean {
  try {
    hides ??= /^\S+ \/proc proc \S*hidepid=/m.test(readFileSync("/proc/self/mounts", "latin1"));
  } catch {
    hides = true;
  }
  return hides;
}

export function readStat(pid: number): Stat | Unread {
  if (isAbsent(pid)) return "gone";
  const file = read(pid, "stat");
  if (typeof file === "string") return file;
  const { text } = file;
  // The name in parentheses may itself hold spaces and parentheses: count from the last one.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const [state, parent, pgrp, session] = fields;
  // A process whose first thread has ended looks like a zombie while its other threads run.
  const dead = (state === "Z" && Number(fields[17]) <= 1) || state === "X";
  return {
    dead,
    parent: Number(parent),
    pgrp: Number(pgrp),
    session: Number(session),
    started: Number(fields[19]),
  };
}

/** A process whose `started` is less was started before. Zero where the system does not report it. */
export function ticksSinceBoot(): number {
  // Hundredths of a second, rounded down like the ticks that processes are started at.
  return Math.max(0, (numberIn("/proc/uptime", /^([0-9.]+) /) ?? 0) * 100 - 1);
}

/** The marks in the environment. */
export function readMarks(pid: number): readonly string[] | Unread {
  const file = read(pid, "environ");
  if (typeof file === "string") return file;
  const start = `\0${file.text}`.indexOf(`\0${MARK_VARIABLE}=`);
  if (start < 0) return [];
  const value = file.text.slice(start + MARK_VARIABLE.length + 1).split("\0", 1)[0]!;
  return value.split(" ");
}

/** The hard limit of file locks. `null`: unlimited. Readable also where the environment is not. */
export function readLocksLimit(pid: number | "self"): bigint | null | Unread {
  const file = read(pid, "limits");
  if (typeof file === "string") return file;
  // Nothing to read: it is ending.
  if (file.text === "") return "gone";
  const hard = /^Max file locks\s+\S+\s+(\d+)/m.exec(file.text)?.[1];
  return hard === undefined ? null : BigInt(hard);
}

/** Name of the program, for messages. */
export function readName(pid: number): string {
  const file = read(pid, "comm");
  const text = typeof file === "string" ? "" : file.text.trim();
  return /^[\x20-\x7e]{1,16}$/.test(text) ? text : "?";
}

/** The number of the process, or thread, that was started last in our pid namespace. `undefined`: not reported here. */
export function lastPid(): number | undefined {
  // The first is what the kernel counts by. Containers may show a made-up loadavg.
  return (
    numberIn("/proc/sys/kernel/ns_last_pid", /^(\d+)\s*$/) ??
    numberIn("/proc/loadavg", /^\S+ \S+ \S+ \d+\/\d+ (\d+)\s*$/)
  );
}

/** Numbers of processes are below this. */
export function pidLimit(): number | undefined {
  return numberIn("/proc/sys/kernel/pid_max", /^(\d+)\s*$/);
}

export function allPids(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^[0-9]+$/.test(name))
    .map(Number);
}

/** Differs between two processes that had the same number one after the other. `undefined`: gone. */
export function identityOf(pid: number): number | undefined {
  return statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.ino;
}

/** Most numbers are those of processes that have ended. This finds out without an exception, which takes ten times as long. */
function isAbsent(pid: number): boolean {
  try {
    return identityOf(pid) === undefined;
  } catch {
    return false;
  }
}

function numberIn(path: string, pattern: RegExp): number | undefined {
  try {
    const found = Number(pattern.exec(readFileSync(path, "latin1"))?.[1]);
    return Number.isFinite(found) && found > 0 ? found : undefined;
  } catch {
    return undefined;
  }
}

function read(pid: number | "self", file: string): { readonly text: string } | Unread {
  try {
    return { text: readFileSync(`/proc/${pid}/${file}`, "latin1") };
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    return code === "EACCES" || code === "EPERM" ? "denied" : "gone";
  }
}
