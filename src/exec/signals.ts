/** Signals to processes and groups that may have ended meanwhile. */

/** Signals a process group. Harmless if there is none any more. */
export function signalGroup(pgid: number, signal: NodeJS.Signals): void {
  if (pgid > 1) send(-pgid, signal);
}

export function signalProcess(pid: number, signal: NodeJS.Signals): void {
  if (pid > 1 && pid !== process.pid) send(pid, signal);
}

/** `forbidden`: it exists, and belongs to another user. */
export function probe(pid: number): "exists" | "forbidden" | "gone" {
  try {
    process.kill(pid, 0);
    return "exists";
  } catch (error) {
    return errno(error) === "EPERM" ? "forbidden" : "gone";
  }
}

export function groupExists(pgid: number): boolean {
  const found = probe(-pgid);
  // macOS says EPERM of a group in which only zombies are left.
  return found === "exists" || (found === "forbidden" && process.platform !== "darwin");
}

function send(target: number, signal: NodeJS.Signals): void {
  if (!Number.isSafeInteger(target)) return;
  try {
    process.kill(target, signal);
  } catch {
    // It has ended, or is not ours to signal. Callers that must know look whether it lives.
  }
}

function errno(error: unknown): string | undefined {
  return error instanceof Error && "code" in error ? String(error.code) : undefined;
}
