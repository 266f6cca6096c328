/** `conclave exec`, or another that runs a command, as a real process, and the processes it leads to. */
import { spawn } from "node:child_process";
import type { ChildProcess, StdioOptions } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, expect } from "vitest";
import { ROOT } from "../shape/sources.js";

export const CLI = join(ROOT, "dist/cli/main.js");
const LIMIT_MS = 25_000;
/** Inherited by every process a test leads to, except watchdogs: what is left over can be found by it. */
const TRACE = `trace-${process.pid}-${Date.now()}`;

/** A program of this folder, compiled. */
export function program(name: string): string {
  return join(ROOT, ".build/test/exec/programs", `${name}.js`);
}

const wrappers = new Set<Wrapped>();
const directories = new Set<string>();

afterEach(async () => {
  for (const wrapped of wrappers) {
    wrapped.kill("SIGCONT");
    wrapped.kill("SIGKILL");
  }
  await Promise.all([...wrappers].map((wrapped) => wrapped.exit));
  wrappers.clear();
  // Nothing of any command outlives its wrapper.
  await until(() => traced().length === 0, 10_000).catch(() => {
    const left = traced();
    for (const pid of left) process.kill(pid, "SIGKILL");
    expect(left.map(commandLine), "processes left behind").toEqual([]);
  });
  for (const directory of directories) rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
  directories.clear();
});

/** A directory that is gone after the test. */
export function scratch(): string {
  const directory = mkdtempSync(join(tmpdir(), "conclave-exec-"));
  directories.add(directory);
  return directory;
}

export interface WrappedOptions {
  /** What follows `conclave`, before `args`. Default `exec`. */
  readonly verb?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  readonly stdin?: "pipe" | "ignore";
  /** Words before `node`: nsenter, unshare. */
  readonly through?: readonly string[];
  /** On a terminal of its own, whose keyboard is stdin and whose screen is stdout. */
  readonly terminal?: boolean;
}

export class Wrapped {
  readonly child: ChildProcess;
  readonly exit: Promise<number | string>;
  readonly out: string[] = [];
  readonly err: string[] = [];
  readonly #waiting = new Set<() => void>();
  #exited = false;

  /** `args`: what follows `conclave exec`, or the other verb. */
  constructor(args: readonly string[], options: WrappedOptions = {}) {
    const plain = [...(options.through ?? []), process.execPath, CLI, ...(options.verb ?? ["exec"]), ...args];
    const words = options.terminal === true ? ["script", "-qec", quoted(plain), "/dev/null"] : plain;
    const stdin = options.terminal === true ? "pipe" : (options.stdin ?? "ignore");
    const stdio: StdioOptions = [stdin, "pipe", "pipe"];
    this.child = spawn(words[0]!, words.slice(1), { stdio, env: environment(options.env) });
    wrappers.add(this);
    createInterface({ input: this.child.stdout! }).on("line", (line) => this.#heard(this.out, line));
    createInterface({ input: this.child.stderr! }).on("line", (line) => this.#heard(this.err, line));
    this.exit = new Promise((resolve) => {
      this.child.on("close", (code, signal) => {
        wrappers.delete(this);
        this.#exited = true;
        for (const look of this.#waiting) look();
        resolve(signal ?? code ?? -1);
      });
    });
  }

  get pid(): number {
    return this.child.pid!;
  }

  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  /** The nth line of stdout, or of stderr, that fits, now or later. */
  line(fits: RegExp, options: { from?: "out" | "err"; nth?: number } = {}): Promise<string> {
    const lines = options.from === "err" ? this.err : this.out;
    return new Promise((resolve, reject) => {
      const finish = (settle: () => void): void => {
        clearTimeout(timer);
        this.#waiting.delete(look);
        settle();
      };
      const fail = (why: string): void => {
        const said = [...this.out, "--", ...this.err].join("\n");
        finish(() => reject(new Error(`${why} without a line like ${String(fits)}; it said:\n${said}`)));
      };
      const look = (): void => {
        const found = lines.filter((line) => fits.test(line))[(options.nth ?? 1) - 1];
        if (found !== undefined) finish(() => resolve(found));
        else if (this.#exited) fail("it ended");
      };
      const timer = setTimeout(() => fail(`${LIMIT_MS} ms passed`), LIMIT_MS);
      this.#waiting.add(look);
      look();
    });
  }

  /** Waits until it leads (for the nth time). Needs `--log text`, the default. Returns the token. */
  async elected(nth = 1): Promise<bigint> {
    const line = await this.line(/ELECTED/, { from: "err", nth });
    return BigInt(/token (\d+)/.exec(line)![1]!);
  }

  /** Process id of its watchdog. */
  async watchdog(): Promise<number> {
    let found: number | undefined;
    await until(() => {
      found = processes().find(
        (pid) => parentOf(pid) === this.pid && /exec\/watchdog\.js/.test(commandLine(pid)),
      );
      return found !== undefined;
    });
    return found!;
  }

  #heard(lines: string[], line: string): void {
    lines.push(line);
    for (const look of this.#waiting) look();
  }
}

/** As a shell reads it back. */
export function quoted(words: readonly string[]): string {
  return words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
}

/** Runs `conclave exec` to its end. */
export async function exec(
  args: readonly string[],
  options: WrappedOptions = {},
): Promise<{ code: number | string; out: string; err: string }> {
  const wrapped = new Wrapped(args, options);
  wrapped.child.stdin?.end();
  const code = await wrapped.exit;
  return { code, out: wrapped.out.join("\n"), err: wrapped.err.join("\n") };
}

/** Waits until something is so; looks every few milliseconds, gives up loudly. */
export async function until(so: () => boolean, limitMs = LIMIT_MS): Promise<void> {
  const end = performance.now() + limitMs;
  while (!so()) {
    if (performance.now() > end) throw new Error(`not so after ${limitMs} ms: ${so.toString()}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

export function isAlive(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return !/^[ZX]/.test(stat.slice(stat.lastIndexOf(")") + 2));
  } catch {
    return false;
  }
}

/** Process id of the backstop of a watchdog. */
export function backstopOf(watchdog: number): number | undefined {
  return processes().find((pid) => parentOf(pid) === watchdog && /cgroup\.kill/.test(commandLine(pid)));
}

export function commandLine(pid: number): string {
  return read(`/proc/${pid}/cmdline`).replaceAll("\0", " ");
}

function parentOf(pid: number): number {
  const stat = read(`/proc/${pid}/stat`);
  return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
}

function processes(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^[0-9]+$/.test(name))
    .map(Number);
}

function traced(): number[] {
  return processes().filter((pid) => isAlive(pid) && read(`/proc/${pid}/environ`).includes(TRACE));
}

function read(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}

/** What the person who runs the tests has set must not decide them. */
function environment(env: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^(CONCLAVE_|ETCD_|INSTANCE_ID$|POD_NAME$|NO_COLOR$|NODE_|VITEST)/.test(name),
  );
  return { ...Object.fromEntries(inherited), TEST_TRACE: TRACE, ...env };
}
