/** Real processes for tests: compiled files of this folder, lines of JSON in, signals out. */
import { fork } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import { join } from "node:path";
import { ROOT } from "../shape/sources.js";

export type Line = Record<string, unknown>;

export class TestProcess {
  readonly child: ChildProcess;
  readonly lines: Line[] = [];
  readonly exited: Promise<void>;
  stderr = "";
  #wake: (() => void)[] = [];

  /** `script` is named from the repository's root, as its source: `test/x/y.ts`. */
  constructor(script: string, args: readonly string[], env: NodeJS.ProcessEnv = {}) {
    this.child = fork(join(ROOT, ".build", script.replace(/\.ts$/, ".js")), args, {
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      env: { ...process.env, ...env },
    });
    createInterface({ input: this.child.stdout! }).on("line", (text) => {
      if (!text.startsWith("{")) return;
      this.lines.push(JSON.parse(text) as Line);
      this.#notify();
    });
    this.child.stderr!.setEncoding("utf8").on("data", (text: string) => (this.stderr += text));
    this.exited = new Promise((resolve) => {
      this.child.once("close", () => {
        resolve();
        this.#notify();
      });
    });
  }

  get running(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  /** The first line from `from` on that fits. Rejects if the process ends without it. */
  async line(fits: (line: Line) => boolean, from = 0): Promise<Line> {
    for (;;) {
      const found = this.lines.slice(from).find(fits);
      if (found !== undefined) return found;
      if (!this.running) throw new Error(`the process ended early: ${this.stderr}`);
      await new Promise<void>((resolve) => this.#wake.push(resolve));
    }
  }

  signal(name: NodeJS.Signals): void {
    this.child.kill(name);
  }

  async end(): Promise<void> {
    if (this.running) {
      this.child.kill("SIGCONT");
      this.child.kill("SIGKILL");
    }
    await this.exited;
  }

  #notify(): void {
    for (const wake of this.#wake.splice(0)) wake();
  }
}
