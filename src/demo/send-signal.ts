/** Signals to a child, apart from its `kill()`: on Deno any signal counts as the end of the child there, and its channel is closed. */
import type { ChildProcess } from "node:child_process";

/** Nothing happens if it has ended: its number may belong to another by then. */
export function sendSignal({ pid, exitCode, signalCode }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined || exitCode !== null || signalCode !== null) return;
  try {
    process.kill(pid, signal);
  } catch {
    // It ended at this moment.
  }
}
