/** The compiled command line, as a real process whose lines can be waited for. */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterEach, vi } from "vitest";
import { main } from "../../src/cli/program.js";

const CLI = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
const LIMIT_MS = 25_000;

export interface JsonLine {
  readonly event: string;
  readonly at: number;
  readonly election: string;
  readonly candidate: string | null;
  readonly token: string | null;
  readonly reason?: string;
  readonly value?: string | null;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

const running = new Set<Cli>();
const directories = new Set<string>();

afterEach(async () => {
  for (const cli of running) cli.child.kill("SIGKILL");
  await Promise.all([...running].map((cli) => cli.exit));
  for (const directory of directories) rmSync(directory, { recursive: true, force: true, maxRetries: 10 });
  directories.clear();
});

/** A directory that is gone after the test. */
export function scratch(): string {
  const directory = mkdtempSync(join(tmpdir(), "conclave-cli-"));
  directories.add(directory);
  return directory;
}

export class Cli {
  readonly child: ChildProcess;
  readonly exit: Promise<Exit>;
  readonly out: string[] = [];
  readonly err: string[] = [];
  readonly #waiting = new Set<() => void>();
  #exited = false;

  /** `launcher`: a command that runs the one that follows it, with limits for example. */
  constructor(
    args: readonly string[],
    env: NodeJS.ProcessEnv = {},
    main: string = CLI,
    launcher: readonly string[] = [],
  ) {
    const [file, ...words] = [...launcher, process.execPath, main, ...args];
    const child = spawn(file!, words, {
      env: { ...clean(process.env), ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.child = child;
    running.add(this);
    createInterface({ input: child.stdout }).on("line", (line) => this.#heard(this.out, line));
    createInterface({ input: child.stderr }).on("line", (line) => this.#heard(this.err, line));
    this.exit = new Promise((resolve) => {
      child.on("close", (code, signal) => {
        running.delete(this);
        this.#exited = true;
        for (const look of this.#waiting) look();
        resolve({ code, signal });
      });
    });
  }

  /** Stdout as the objects it should consist of. */
  get json(): JsonLine[] {
    return this.out.map((line) => JSON.parse(line) as JsonLine);
  }

  /** The first line of stdout that fits, now or later. */
  line(fits: RegExp | ((line: string) => boolean)): Promise<string> {
    return this.#first(this.out, fits);
  }

  /** The first line of stderr that fits, now or later. */
  errLine(fits: RegExp): Promise<string> {
    return this.#first(this.err, fits);
  }

  #first(lines: readonly string[], fits: RegExp | ((line: string) => boolean)): Promise<string> {
    const test = fits instanceof RegExp ? (line: string): boolean => fits.test(line) : fits;
    return new Promise((resolve, reject) => {
      const finish = (settle: () => void): void => {
        clearTimeout(timer);
        this.#waiting.delete(look);
        settle();
      };
      const fail = (why: string): void => {
        const said = [...this.out, ...this.err].join("\n");
        finish(() => reject(new Error(`${why} without a line like ${String(fits)}; it said:\n${said}`)));
      };
      const look = (): void => {
        const found = lines.find(test);
        if (found !== undefined) finish(() => resolve(found));
        else if (this.#exited) fail("it ended");
      };
      const timer = setTimeout(() => fail(`${LIMIT_MS} ms passed`), LIMIT_MS);
      this.#waiting.add(look);
      look();
    });
  }

  /** The first JSON line about an event. */
  async event(name: string, candidate?: (candidate: string | null) => boolean): Promise<JsonLine> {
    const line = await this.line((text) => {
      const { event, candidate: who } = JSON.parse(text) as JsonLine;
      return event === name && (candidate?.(who) ?? true);
    });
    return JSON.parse(line) as JsonLine;
  }

  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  #heard(lines: string[], line: string): void {
    lines.push(line);
    for (const look of this.#waiting) look();
  }
}

export interface Finished {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** A command that ends by itself. */
export async function conclave(args: readonly string[], env?: NodeJS.ProcessEnv): Promise<Finished> {
  const cli = new Cli(args, env);
  const { code } = await cli.exit;
  return { code, out: cli.out.join("\n"), err: cli.err.join("\n") };
}

/** The same without a process of its own, where one is not the point: much faster. */
export async function inProcess(args: readonly string[]): Promise<Finished> {
  const said = { stdout: "", stderr: "" };
  const spies = (["stdout", "stderr"] as const).map((name) =>
    vi.spyOn(process[name], "write").mockImplementation((text) => {
      said[name] += String(text);
      return true;
    }),
  );
  const before = process.env;
  process.env = clean(before);
  try {
    const code = await main(args);
    return { code, out: said.stdout.trimEnd(), err: said.stderr.trimEnd() };
  } finally {
    process.env = before;
    for (const spy of spies) spy.mockRestore();
  }
}

/** What the person who runs the tests has set must not decide them. */
function clean(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { CONCLAVE_BACKEND: _b, CONCLAVE_ID: _c, INSTANCE_ID: _i, POD_NAME: _p, NO_COLOR: _n, ...rest } = env;
  const { CONCLAVE_SIDECAR_TOKEN: _t, ...clean } = rest;
  return clean;
}
