/**
 * The processes of one command: its process group and, where /proc tells, what
 * has left the group but not the session, and what has left both but still
 * carries the command's mark in its environment.
 *
 * Not promised: a process that leaves the group *and* clears its environment is
 * not found, and one that runs as another user (sudo) cannot be ended by us.
 */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** Holds the marks of every `exec` a process runs under, the innermost last. */
export const MARK_VARIABLE = "CONCLAVE_EXEC";

export interface Tree {
  /** Process group, and session, of the command. `undefined`: not known, only the mark is. */
  readonly pgid: number | undefined;
  /** A word that only processes of this tree have in {@link MARK_VARIABLE}. */
  readonly mark: string;
}

/** Signals the process group. Harmless if there is none any more. */
export function signalGroup(pgid: number, signal: NodeJS.Signals): void {
  send(-pgid, signal);
}

/** SIGKILL to all of it: the group at one stroke, then every stray that can be found. */
export function destroy(tree: Tree): void {
  if (tree.pgid !== undefined) send(-tree.pgid, "SIGKILL");
  if (!hasProc()) return;
  for (const pid of living(tree)) send(pid, "SIGKILL");
}

/** Whether any of it lives. A zombie does nothing more, and where process 1 reaps nobody it stays for ever: not alive. */
export function isAlive(tree: Tree): boolean {
  if (hasProc()) return living(tree).length > 0;
  return tree.pgid !== undefined && groupExists(tree.pgid);
}

function living(tree: Tree): number[] {
  return readdirSync("/proc")
    .filter((name) => /^[0-9]+$/.test(name) && Number(name) !== process.pid)
    .map(Number)
    .filter((pid) => {
      const stat = statOf(pid);
      if (stat === undefined || stat.dead) return false;
      const near = tree.pgid !== undefined && (stat.pgrp === tree.pgid || stat.session === tree.pgid);
      return near || isMarked(pid, tree.mark);
    });
}

interface Stat {
  readonly dead: boolean;
  readonly pgrp: number;
  readonly session: number;
}

function statOf(pid: number): Stat | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The name in parentheses may itself hold spaces and parentheses: count from the last one.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    const [state, , pgrp, session] = fields;
    // A process whose first thread has ended looks like a zombie while its other threads run.
    const dead = (state === "Z" && Number(fields[17]) <= 1) || state === "X";
    return { dead, pgrp: Number(pgrp), session: Number(session) };
  } catch {
    return undefined;
  }
}

function isMarked(pid: number, mark: string): boolean {
  try {
    const environment = readFileSync(`/proc/${pid}/environ`, "latin1");
    const start = `\0${environment}`.indexOf(`\0${MARK_VARIABLE}=`);
    if (start < 0) return false;
    const value = environment.slice(start + MARK_VARIABLE.length + 1).split("\0", 1)[0]!;
    return value.split(" ").includes(mark);
  } catch {
    // Gone, or another user's.
    return false;
  }
}

let proc: boolean | undefined;

/** A /proc of another pid namespace would speak of other processes. */
function hasProc(): boolean {
  try {
    proc ??= readlinkSync("/proc/self") === String(process.pid);
  } catch {
    proc = false;
  }
  return proc;
}

function groupExists(pgid: number): boolean {
  try {
    process.kill(-pgid, 0);
    return true;
  } catch (error) {
    // macOS says EPERM of a group in which only zombies are left.
    return errno(error) === "EPERM" && process.platform !== "darwin";
  }
}

/** Zero and negative numbers would be our own group, or everybody. */
function send(target: number, signal: NodeJS.Signals): void {
  if (!Number.isSafeInteger(target) || Math.abs(target) <= 1) return;
  try {
    process.kill(target, signal);
  } catch {
    // Gone, or not ours to signal. Whoever must know looks whether it lives.
  }
}

function errno(error: unknown): string | undefined {
  return error instanceof Error && "code" in error ? String(error.code) : undefined;
}
