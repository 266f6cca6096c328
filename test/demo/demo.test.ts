/** The demo, run for real: it must show what it says, and leave nothing behind however it ends. */
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it, vi } from "vitest";
import { Cli, scratch } from "../cli/process.js";

/** The processes it started that are still there. A zombie is not. */
function survivors(cli: Cli): number[] {
  const pids = cli.out.flatMap((line) => /started as process (\d+)/.exec(line)?.[1] ?? []).map(Number);
  expect(pids.length).toBeGreaterThan(0);
  return pids.filter((pid) => {
    try {
      process.kill(pid, 0);
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("demo-node");
    } catch {
      return false;
    }
  });
}

function nothingLeft(cli: Cli, temporary: string): void {
  expect(survivors(cli)).toEqual([]);
  expect(readdirSync(temporary)).toEqual([]);
}

function demo(temporary: string, ...flags: string[]): Cli {
  return new Cli(["demo", "--ttl", "2s", ...flags], { TMPDIR: temporary });
}

describe("conclave demo", () => {
  it("shows a handover, a crash and a frozen leader, with times and rising tokens, and ends by itself", async () => {
    const temporary = scratch();
    const cli = demo(temporary, "--once", "--nodes", "3");
    expect(await cli.exit).toEqual({ code: 0, signal: null });
    expect(cli.err).toEqual([]);
    nothingLeft(cli, temporary);

    const said = cli.out.join("\n");
    const measured = [
      ...said
        .slice(said.indexOf("── Measured"))
        .matchAll(/⏱ (.+): node\d → node\d in ([\d.]+) ms, token (\d+) → (\d+)/g),
    ];
    expect(measured.map((match) => match[1])).toEqual([
      "graceful handover",
      "crash failover",
      "frozen leader replaced",
    ]);
    for (const match of measured) expect(BigInt(match[4]!)).toBeGreaterThan(BigInt(match[3]!));
    expect(BigInt(measured[1]![3]!)).toBeGreaterThanOrEqual(BigInt(measured[0]![4]!));
    // A frozen leader is waited for: its lease runs from its last renewal, at most ttl/3 before.
    expect(Number(measured[2]![2])).toBeGreaterThan(1_000);

    expect(said).toMatch(/knows that its term is over \(expired\)/);
    expect(said).toMatch(/ledger REFUSES its late write: token \d+ is older than \d+/);
    expect(said).toMatch(/writes: \d+ accepted, 1 refused/);
    expect(said).not.toContain("\u001b");
    // The woken leader knows it before its late write is sent, and writes nothing under the old term.
    const lines = cli.out;
    const woken = lines.findIndex((line) => line.includes("SIGCONT sent"));
    const node = /\[(node\d)\]/.exec(lines[woken]!)![1]!;
    const acts = lines.slice(woken + 1).filter((line) => line.includes(`[${node}]`));
    expect(acts[0]).toMatch(/knows that its term is over/);
    expect(acts.some((line) => line.includes("ledger accepts"))).toBe(false);
  }, 120_000);

  it("ends at once when it is interrupted while a leader is frozen", async () => {
    const temporary = scratch();
    const cli = demo(temporary);
    await cli.line(/elected, token/);
    await cli.line(/SIGSTOP sent/);
    cli.kill("SIGINT");
    expect(await cli.exit).toEqual({ code: 0, signal: null });
    nothingLeft(cli, temporary);
  }, 120_000);

  it("leaves nothing behind when a second signal cuts it off", async () => {
    const temporary = scratch();
    const cli = demo(temporary);
    await cli.line(/elected, token/);
    for (const signal of ["SIGSTOP", "SIGTERM", "SIGINT", "SIGCONT"] as const) cli.kill(signal);
    expect([130, 143]).toContain((await cli.exit).code);
    await vi.waitFor(() => expect(survivors(cli)).toEqual([]), 10_000);
    expect(readdirSync(temporary)).toEqual([]);
  }, 60_000);

  it("leaves no process behind even when its director is killed", async () => {
    const cli = demo(scratch());
    await cli.line(/elected, token/);
    cli.kill("SIGKILL");
    await cli.exit;
    await vi.waitFor(() => expect(survivors(cli)).toEqual([]), 10_000);
  }, 60_000);

  it("goes on until it is told to stop, and starts again whoever ends", async () => {
    const temporary = scratch();
    const cli = demo(temporary, "--nodes", "2");
    const line = await cli.line(/node1 is process \d+/);
    const pid = Number(/node1 is process (\d+)/.exec(line)![1]);
    const starts = (): number => cli.out.filter((text) => text.includes("[node1] ▶ started")).length;
    const before = starts();
    process.kill(pid, "SIGKILL");
    await cli.line(() => starts() > before);
    cli.kill("SIGTERM");
    expect(await cli.exit).toEqual({ code: 0, signal: null });
    nothingLeft(cli, temporary);
  }, 120_000);
});
