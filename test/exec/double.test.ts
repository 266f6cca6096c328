/** Rows F of the table in docs/guide/exec.md: two faults at once. */
import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { cannotUse, ownCgroup } from "../../src/exec/cgroup.js";
import { backstopOf, isAlive, program, scratch, until, Wrapped } from "./wrapped.js";

const TTL = ["--ttl", "2s"];
const own = ownCgroup();
const contained = process.platform === "linux" && !("why" in own) && cannotUse(own.directory) === undefined;
const setsid = spawnSync("sh", ["-c", "command -v setsid"]).status === 0;

/** A command, its child in the same group and, where they can be contained, a daemon. */
async function family(directory: string): Promise<{ wrapped: Wrapped; watchdog: number; pids: number[] }> {
  const node = `"${process.execPath}" "${program("signalled")}"`;
  const daemon = contained && setsid ? `setsid ${node} daemon & ` : "";
  const script = `${daemon}${node} child & exec ${node} parent`;
  const wrapped = new Wrapped(["x", "--lock-dir", directory, ...TTL, "--", "sh", "-c", script]);
  const names = ["parent", "child", ...(daemon === "" ? [] : ["daemon"])];
  const ups = await Promise.all(names.map((name) => wrapped.line(new RegExp(`^${name} up`))));
  return { wrapped, watchdog: await wrapped.watchdog(), pids: ups.map((line) => Number(line.split(" ")[2])) };
}

/** Another host that would lead, and says when its command starts. */
function heirOf(directory: string): Wrapped {
  return new Wrapped(["x", "--lock-dir", directory, ...TTL, "--", "sh", "-c", "echo heir; exec sleep 60"]);
}

/** How many live, looked at until the heir's command has started. */
async function livingBeside(heir: Wrapped, pids: readonly number[]): Promise<number[]> {
  await heir.line(/^heir/);
  return pids.filter(isAlive);
}

describe("two faults at once", () => {
  it("F1 SIGKILL to wrapper and watchdog: the backstop ends the command before another starts", async () => {
    const directory = scratch();
    const { wrapped, watchdog, pids } = await family(directory);
    const heir = heirOf(directory);
    await heir.line(/NEW LEADER/, { from: "err" });
    process.kill(watchdog, "SIGKILL");
    wrapped.kill("SIGKILL");
    expect(await livingBeside(heir, pids)).toEqual([]);
  });

  it("F2 SIGSTOP to wrapper and watchdog: the backstop ends the command before their lease ends", async () => {
    const directory = scratch();
    const { wrapped, watchdog, pids } = await family(directory);
    const heir = heirOf(directory);
    await heir.line(/NEW LEADER/, { from: "err" });
    process.kill(watchdog, "SIGSTOP");
    wrapped.kill("SIGSTOP");
    try {
      expect(await livingBeside(heir, pids)).toEqual([]);
    } finally {
      process.kill(watchdog, "SIGCONT");
      wrapped.kill("SIGCONT");
    }
  });

  it("F3 one killed, the other stopped: the backstop ends the command before their lease ends", async () => {
    for (const stopped of ["wrapper", "watchdog"] as const) {
      const directory = scratch();
      const { wrapped, watchdog, pids } = await family(directory);
      const heir = heirOf(directory);
      await heir.line(/NEW LEADER/, { from: "err" });
      if (stopped === "watchdog") process.kill(watchdog, "SIGSTOP");
      else wrapped.kill("SIGSTOP");
      if (stopped === "watchdog") wrapped.kill("SIGKILL");
      else process.kill(watchdog, "SIGKILL");
      try {
        expect(await livingBeside(heir, pids), `${stopped} stopped`).toEqual([]);
      } finally {
        if (isAlive(watchdog)) process.kill(watchdog, "SIGCONT");
        wrapped.kill("SIGCONT");
      }
    }
  });

  it("F4 SIGKILL to the backstop alone: the watchdog starts another, the command goes on", async () => {
    const { watchdog, pids } = await family(scratch());
    const first = backstopOf(watchdog)!;
    // One that does not live for a second is taken for impossible.
    await new Promise((resolve) => setTimeout(resolve, 1_200));
    process.kill(first, "SIGKILL");
    await until(() => {
      const next = backstopOf(watchdog);
      return next !== undefined && next !== first;
    });
    expect(pids.every(isAlive)).toBe(true);
  });
});
