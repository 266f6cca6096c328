/**
 * A command that runs on behalf of a term: in a process group of its own, which
 * is gone when this returns. If this program itself is killed, nobody ends the
 * group; what must not go on then checks CONCLAVE_TOKEN at its resources.
 */
import { spawn } from "node:child_process";
import { constants } from "node:os";
import type { Term } from "../core/term.js";
import { onAbort } from "../core/waiting.js";
import { UsageError } from "./failure.js";

export interface ChildOptions {
  readonly command: readonly string[];
  /** Added to our own environment. */
  readonly env: Readonly<Record<string, string>>;
  /** Aborts: the group is told to end (SIGTERM), and killed after `graceMs`. */
  readonly signal: AbortSignal;
  readonly graceMs: number;
}

export interface ChildEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** What a command is told of the term it works for. */
export function termEnvironment(term: Term): Record<string, string> {
  return {
    CONCLAVE_ELECTION: term.election,
    CONCLAVE_CANDIDATE: term.candidate,
    CONCLAVE_TOKEN: term.token.toString(),
  };
}

/** The exit code of a shell for the same end. */
export function exitCodeOfChild(end: ChildEnd): number {
  return end.code ?? 128 + (end.signal === null ? 0 : constants.signals[end.signal]);
}

/** Runs the command to its end. Rejects only if it could not be started. */
export function runChild(options: ChildOptions): Promise<ChildEnd> {
  const [program, ...args] = options.command;
  if (program === undefined) throw new UsageError("no command: write it after --");
  const child = spawn(program, args, {
    stdio: "inherit",
    detached: true,
    env: { ...process.env, ...options.env },
  });
  return new Promise((resolve, reject) => {
    let killing: NodeJS.Timeout | undefined;
    const unlink = onAbort(options.signal, () => {
      signalGroup(child.pid, "SIGTERM");
      killing = setTimeout(() => signalGroup(child.pid, "SIGKILL"), options.graceMs);
    });
    const over = (): void => {
      unlink();
      clearTimeout(killing);
    };
    child.once("error", (error) => {
      over();
      reject(new UsageError(`${program} could not be started: ${error.message}`));
    });
    child.once("exit", (code, signal) => {
      over();
      // What it left behind in the background worked for the same term.
      signalGroup(child.pid, "SIGKILL");
      resolve({ code, signal });
    });
  });
}

function signalGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // Nobody left.
  }
}
