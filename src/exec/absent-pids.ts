/**
 * Numbers under which nothing was found. The kernel counts a number before /proc
 * shows the process, and a busy host may stop in between: they are examined
 * again, after growing pauses.
 */
import type { Ownership } from "./recognise.js";

/** From when the kernel counts a process to when /proc shows it: microseconds, more where the host is overloaded. */
const LONGEST_BIRTH_MS = 1_000;

export class AbsentPids {
  /** Since when each is absent, and when to look again. */
  readonly #pids = new Map<number, { readonly since: number; due: number }>();

  add(pid: number, now: number): void {
    this.#pids.set(pid, { since: now, due: now + 1 });
  }

  delete(pid: number): void {
    this.#pids.delete(pid);
  }

  /** Examines all that are due by then. Whether one of them is of the command. */
  examine(dueBy: number, ownershipOf: (pid: number) => Ownership): boolean {
    const now = performance.now();
    let ours = false;
    for (const [pid, absent] of this.#pids) {
      if (absent.due > dueBy) continue;
      const ownership = ownershipOf(pid);
      ours ||= ownership === "ours";
      if (ownership !== "gone" || now - absent.since > LONGEST_BIRTH_MS) this.#pids.delete(pid);
      else absent.due = now + 1 + 3 * (now - absent.since);
    }
    return ours;
  }
}
