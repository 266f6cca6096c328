/** What can be seen of a helper from outside. */
import { execFileSync } from "node:child_process";

/** Pids of the helpers that this process has started. */
export function helpersOf(pid: number): number[] {
  try {
    const lines = execFileSync("ps", ["-o", "pid=,args=", "--ppid", String(pid)], { encoding: "utf8" });
    return lines
      .split("\n")
      .filter((line) => line.includes("/executor/main.js"))
      .map((line) => Number.parseInt(line, 10));
  } catch {
    return []; // ps found none
  }
}
