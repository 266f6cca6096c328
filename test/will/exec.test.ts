/** Leadership over a command that runs is given back only when the command is dead, whoever else is. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { Cli } from "../cli/process.js";
import { until } from "../support/until.js";
import { stores } from "./stores.js";

const { open } = stores.find(({ name }) => name === "redis") ?? stores[0]!;

function childrenOf(pid: number, words: string): number[] {
  try {
    const lines = execFileSync("ps", ["-o", "pid=,args=", "--ppid", String(pid)], { encoding: "utf8" });
    return lines
      .split("\n")
      .filter((line) => line.includes(words))
      .map((line) => Number.parseInt(line, 10));
  } catch {
    return [];
  }
}

/** Dead, whether or not its parent has taken notice: a process that has ended acts no more. */
function isDead(pid: number): boolean {
  try {
    return /^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return true;
  }
}

it("exec: the wrapper is killed, its watchdog is stopped, the command lives: nothing is given back before it is dead", async () => {
  const runtime = mkdtempSync(join(tmpdir(), "conclave-run-"));
  onTestFinished(() => rmSync(runtime, { recursive: true, force: true, maxRetries: 10 }));
  const env = { CONCLAVE_BACKEND: await open(), XDG_RUNTIME_DIR: runtime };
  const wrapper = new Cli(["exec", "jobs", "--ttl", "60s", "--log", "json", "--", "sleep", "987"], env);
  let watchdog: number | undefined;
  let command: number | undefined;
  await until(() => {
    [watchdog] = childrenOf(wrapper.child.pid!, "watchdog.js");
    if (watchdog !== undefined) [command] = childrenOf(watchdog, "sleep 987");
    return command !== undefined;
  }, 20_000);
  const next = new Cli(["run", "jobs", "--ttl", "60s", "--log", "json"], env);
  await next.event("leader", (who) => who !== null);
  process.kill(watchdog!, "SIGSTOP");
  process.kill(wrapper.child.pid!, "SIGKILL");
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  expect(isDead(command!)).toBe(false);
  expect(next.json.some(({ event }) => event === "elected")).toBe(false);
  process.kill(watchdog!, "SIGCONT"); // it finds its wrapper gone, and ends the command
  await next.event("elected");
  expect(isDead(command!)).toBe(true);
  next.kill("SIGTERM");
  await next.exit;
}, 60_000);

it("exec: wrapper and watchdog are killed together: the command is dead before another leads", async () => {
  const runtime = mkdtempSync(join(tmpdir(), "conclave-run-"));
  onTestFinished(() => rmSync(runtime, { recursive: true, force: true, maxRetries: 10 }));
  const env = { CONCLAVE_BACKEND: await open(), XDG_RUNTIME_DIR: runtime };
  const wrapper = new Cli(["exec", "jobs", "--ttl", "60s", "--log", "json", "--", "sleep", "986"], env);
  let watchdog: number | undefined;
  let command: number | undefined;
  await until(() => {
    [watchdog] = childrenOf(wrapper.child.pid!, "watchdog.js");
    if (watchdog !== undefined) [command] = childrenOf(watchdog, "sleep 986");
    return command !== undefined;
  }, 20_000);
  const next = new Cli(["run", "jobs", "--ttl", "60s", "--log", "json"], env);
  await next.event("leader", (who) => who !== null);
  process.kill(watchdog!, "SIGKILL");
  process.kill(wrapper.child.pid!, "SIGKILL");
  await next.event("elected");
  expect(isDead(command!)).toBe(true);
  next.kill("SIGTERM");
  await next.exit;
}, 60_000);
