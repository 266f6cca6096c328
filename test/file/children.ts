/** Real processes for tests: started from the compiled sources, spoken to by messages, gone after the test. */
import type { ChildProcess } from "node:child_process";
import { fork } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterEach } from "vitest";

const children = new Set<ChildProcess>();

afterEach(async () => {
  await Promise.all([...children].map(kill));
});

/** Starts `.build/test/file/programs/<program>.js`. */
export function start(program: string, ...args: string[]): ChildProcess {
  const path = fileURLToPath(new URL(`../../.build/test/file/programs/${program}.js`, import.meta.url));
  if (!existsSync(path)) throw new Error(`${program} is not compiled: run npm run build:tools`);
  // The pipe keeps what a child wrote before it was killed.
  const child = fork(path, args, { stdio: ["ignore", "pipe", "inherit", "ipc"], execArgv: [] });
  children.add(child);
  child.once("exit", () => children.delete(child));
  return child;
}

export async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}

/** Runs `tasks` with at most `width` at a time. */
export async function pooled<T>(width: number, tasks: readonly (() => Promise<T>)[]): Promise<T[]> {
  const results: T[] = [];
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let i = next++; i < tasks.length; i = next++) results[i] = await tasks[i]!();
  };
  await Promise.all(Array.from({ length: width }, lane));
  return results;
}
