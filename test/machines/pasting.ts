/** Runs what the documentation shows on machines of {@link Machines}, and says who led when. */
import { execFileSync, spawn } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { until } from "../exec/wrapped.js";
import { ROOT } from "../shape/sources.js";
import type { Example } from "./examples.js";
import type { Machine } from "./machines.js";

/** In the package's folder, so that snippets find `conclave` and its optional parts. */
const FOLDER = join(ROOT, "artifacts/machines");
const LIMIT_MS = 25_000;
const STOP_MS = 2_000;
const ENOUGH_RUNS = 7;
const DOES_NOT_LEAD = /leads|held|someone|somebody/i;

export interface Note {
  readonly machine: string;
  readonly what: "starts" | "leads" | "stops";
  readonly at: number;
  /** Of a term; not of a start. */
  readonly election?: string;
  readonly token?: string;
}

/** Programs by the names that the examples use, and the command itself, as if it were installed. */
export function prepare(): void {
  tidy();
  mkdirSync(join(FOLDER, "bin"), { recursive: true });
  const script = (name: string, text: string): void => {
    writeFileSync(join(FOLDER, "bin", name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(FOLDER, "bin", name), 0o755);
  };
  script("conclave", `exec node ${join(ROOT, "dist/cli/main.js")} "$@"`);
  script("npx", 'exec "$@"');
  script("program", "sleep 1");
  writeFileSync(join(FOLDER, "token"), "A-token-of-the-reader-of-this-page\n", { mode: 0o600 });
}

/** All of it is gone. */
export function tidy(): void {
  rmSync(FOLDER, { recursive: true, force: true, maxRetries: 10 });
}

/** With a part of the store for itself: examples are tried side by side, and many have the same name. */
export function apart(text: string, part: string): string {
  return text
    .replaceAll(/(etcd:\/\/[^\s"'`&)]+)/g, `$1/${part}`)
    .replaceAll("postgres://app@db/orders", `postgres://app@db/${part}`);
}

/** What the reader's own files and functions would be. */
function commandFile(example: Example, part: string): string {
  const text = example.text
    .replace(/^[\d*/ ]+ {2,}(?=conclave)/, "") // five fields of a crontab
    .replaceAll(/'0 [39] \* \* \*'/g, "'* * * * * *'")
    .replaceAll("/usr/local/bin/backup", join(FOLDER, "bin/program"))
    .replaceAll("/run/secrets/conclave", join(FOLDER, "token"));
  const own = text.match(/\.\/[a-z-]+\.sh/g) ?? [];
  const scripts = own.map((name) => `cp ${join(FOLDER, "bin/program")} ${name}`);
  const file = join(FOLDER, `${part}.sh`);
  const lines = [`mkdir -p ${part}`, `cd ${part}`, ...scripts, example.before, text];
  writeFileSync(file, `${apart(lines.join("\n"), part)}\n`);
  return file;
}

function snippetFile(example: Example, part: string): string {
  const declared = [...example.text.matchAll(/^declare function (\w+)/gm)].map(([, name]) => name);
  const stubs = declared.map((name) => `globalThis.${name} = async () => console.log("${name}");`);
  const source = apart(example.text, part).replaceAll(/"0 [39] \* \* \*"/g, '"* * * * * *"');
  const text = `${stubs.join("\n")}\n${source}`;
  const commonJs = source.includes("require(");
  const file = join(FOLDER, `${part}.${commonJs ? "cjs" : "mts"}`);
  writeFileSync(file, text);
  if (commonJs) return file;
  const target = ["--module", "esnext", "--target", "es2022", "--noCheck", "--ignoreConfig"];
  execFileSync(process.execPath, [join(ROOT, "node_modules/typescript/bin/tsc"), ...target, file], {
    cwd: FOLDER,
  });
  return file.replace(/mts$/, "mjs");
}

class Pasted {
  readonly machine: string;
  text = "";
  code: number | null | undefined;
  readonly #kill: (signal: NodeJS.Signals) => void;

  constructor(machine: Machine, words: readonly string[], env: NodeJS.ProcessEnv) {
    this.machine = machine.name;
    const [program, ...more] = [...machine.through, ...words];
    const path = `${join(FOLDER, "bin")}:${dirname(process.execPath)}:${process.env["PATH"]}`;
    const child = spawn(program!, more, {
      detached: true,
      env: { PATH: path, HOME: "/root", NO_COLOR: "1", ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (text: string) => (this.text += text));
    child.once("close", (code) => (this.code = code));
    this.#kill = (signal) => {
      try {
        process.kill(-child.pid!, signal);
      } catch {
        // It has ended.
      }
    };
  }

  get ended(): boolean {
    return this.code !== undefined;
  }

  async stop(): Promise<void> {
    this.#kill("SIGTERM");
    await until(() => this.ended, STOP_MS).catch(() => this.#kill("SIGKILL"));
    await until(() => this.ended, LIMIT_MS);
  }
}

/** The coordinator of node-cron leads nowhere: it claims each run. How often each machine ran in this time says whether they share. */
export async function runsOnBoth(
  machines: readonly Machine[],
  example: Example,
  index: number,
): Promise<{ seconds: number; runs: readonly number[]; text: string }> {
  const file = snippetFile(example, `p${index}`);
  const pasted = machines.map((machine) => new Pasted(machine, ["node", file], {}));
  const runs = (): number[] => pasted.map(({ text }) => text.split("\n").length - 1);
  const text = (): string => pasted.map((one) => one.text).join("\n");
  await until(() => runs().some((count) => count > 0), LIMIT_MS);
  const since = performance.now();
  await until(() => runs().reduce((sum, count) => sum + count) >= ENOUGH_RUNS, LIMIT_MS).catch(() => {});
  const seconds = (performance.now() - since) / 1_000;
  await Promise.all(pasted.map((one) => one.stop()));
  return { seconds, runs: runs(), text: text() };
}

export interface Outcome {
  readonly notes: readonly Note[];
  readonly machines: readonly { machine: string; led: boolean; ended: boolean; text: string }[];
  /** All that was said, for a failing test. */
  readonly text: string;
}

/** Until each machine has led, or its program has ended. */
export async function onBoth(
  machines: readonly Machine[],
  example: Example,
  index: number,
): Promise<Outcome> {
  const part = `p${index}`;
  const file = example.kind === "command" ? commandFile(example, part) : snippetFile(example, part);
  const words = [example.kind === "command" ? "sh" : "node", file];
  const heard = join(FOLDER, `${part}.notes`);
  const options = `--import=${pathToFileURL(join(ROOT, "test/machines/notes.mjs")).href}`;
  const pasted = machines.map(
    (machine) => new Pasted(machine, words, { NODE_OPTIONS: options, PASTED_NOTES: heard }),
  );
  const notes = (): Note[] => (existsSync(heard) ? parse(readFileSync(heard, "utf8")) : []);
  const led = (machine: string): boolean =>
    notes().some((note) => note.machine === machine && note.what === "leads");
  await until(() => pasted.every(({ machine, ended }) => ended || led(machine)), LIMIT_MS).catch(() => {});
  await Promise.all(pasted.map((one) => one.stop()));
  return {
    notes: notes(),
    machines: pasted.map(({ machine, text, ended }) => ({ machine, led: led(machine), ended, text })),
    text: `${pasted.map(({ machine, text }) => `${machine}:\n${text}`).join("\n")}\n${JSON.stringify(notes())}`,
  };
}

/** A command by itself, in a container: until it has ended, or said that no store was named. */
export async function inContainer(
  machine: Machine,
  example: Example,
  index: number,
): Promise<{ code: number | null | undefined; text: string }> {
  const file = commandFile(example, `c${index}`);
  const pasted = new Pasted(machine, ["sh", file], { container: "podman" });
  await until(() => pasted.ended || /WARNING: no store was named/.test(pasted.text), LIMIT_MS).catch(
    () => {},
  );
  await pasted.stop();
  return pasted;
}

function parse(text: string): Note[] {
  return text
    .split("\n")
    .filter((line) => line.endsWith("}"))
    .map((line) => JSON.parse(line) as Note);
}

export interface Led {
  readonly machine: string;
  readonly election: string;
  readonly token: string;
  readonly from: number;
  readonly to: number;
}

/** The terms of an outcome; one that was not seen to end lasts for ever. */
export function termsOf(notes: readonly Note[]): Led[] {
  return notes
    .filter(({ what }) => what === "leads")
    .map(({ machine, election = "", token = "", at }) => {
      const end = notes.find(
        (note) => note.what === "stops" && note.machine === machine && note.token === token,
      );
      return { machine, election, token, from: at, to: end?.at ?? Number.POSITIVE_INFINITY };
    });
}

/** Pairs of terms of one election, on two machines, at the same time. */
export function overlaps(terms: readonly Led[]): (readonly [Led, Led])[] {
  return terms.flatMap((one, i) =>
    terms
      .slice(i + 1)
      .filter((two) => one.machine !== two.machine && one.election === two.election)
      .filter((two) => one.from < two.to && two.from < one.to)
      .map((two) => [one, two] as const),
  );
}

/** Whether a program that has never led says that another one does. */
export function saysWhy(text: string): boolean {
  return DOES_NOT_LEAD.test(text);
}
