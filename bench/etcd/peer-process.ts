/** A process of the bench: it says lines of JSON; what it costs is read from outside, the same way for every language. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { machineMs } from "../machine-clock.js";

/** Clock ticks of /proc a second, on Linux. */
const TICKS = 100;

/** A line that was said, and when it was heard. */
export type Said = { readonly event: string; readonly heardAt: number } & Readonly<
  Record<string, number | string>
>;

export class PeerProcess {
  readonly child: ChildProcess;
  readonly #heard: Said[] = [];
  readonly #waiting = new Set<() => void>();
  #ended = false;

  /** `script`: a file beside this one for Node; a program as it is. */
  constructor(program: { readonly script: string } | { readonly path: string }, ...args: string[]) {
    const script = "script" in program ? fileURLToPath(new URL(program.script, import.meta.url)) : undefined;
    this.child =
      script === undefined
        ? spawn("path" in program ? program.path : "", args, { stdio: ["pipe", "pipe", "inherit"] })
        : spawn(process.execPath, [script, ...args], { stdio: ["pipe", "pipe", "inherit"] });
    createInterface({ input: this.child.stdout! }).on("line", (line) => {
      this.#heard.push({ ...(JSON.parse(line) as Said), heardAt: machineMs() });
      for (const tell of this.#waiting) tell();
    });
    this.child.once("exit", () => {
      this.#ended = true;
      for (const tell of this.#waiting) tell();
    });
  }

  /** The next line of this kind, after those said so far. */
  async next(event: string): Promise<Said> {
    const known = this.#heard.length;
    return this.#first(event, known);
  }

  /** A line for its input. */
  tell(line: string): void {
    this.child.stdin?.write(`${line}\n`);
  }

  /** The first line of this kind. Rejects if the process ends without it. */
  said(event: string): Promise<Said> {
    return this.#first(event, 0);
  }

  #first(event: string, from: number): Promise<Said> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        const found = this.#heard.find((said, i) => i >= from && said.event === event);
        if (found === undefined && !this.#ended) return;
        this.#waiting.delete(look);
        if (found === undefined) reject(new Error(`the process ended before it said "${event}"`));
        else resolve(found);
      };
      this.#waiting.add(look);
      look();
    });
  }

  /** CPU seconds used so far. */
  get cpuSeconds(): number {
    const stat = readFileSync(`/proc/${this.child.pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return (Number(fields[11]) + Number(fields[12])) / TICKS;
  }

  /** Resident memory in bytes: now (`VmRSS`), or at most so far (`VmHWM`). */
  resident(which: "VmRSS" | "VmHWM"): number {
    const status = readFileSync(`/proc/${this.child.pid}/status`, "utf8");
    return Number(new RegExp(`^${which}:\\s+(\\d+) kB`, "m").exec(status)?.[1] ?? Number.NaN) * 1024;
  }

  async kill(): Promise<void> {
    if (this.#ended) return;
    this.child.kill("SIGKILL");
    await once(this.child, "exit");
  }
}
