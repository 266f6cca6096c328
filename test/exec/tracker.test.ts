/** What is found of a command in /proc, with real processes. */
import { spawn, spawnSync } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { carriesLimit, newLimitMark } from "../../src/exec/limit-mark.js";
import { hasProc, lastPid, MARK_VARIABLE, readLocksLimit } from "../../src/exec/procfs.js";
import { groupExists } from "../../src/exec/signals.js";
import { ProcessTracker } from "../../src/exec/tracker.js";
import { asOther, lackingUsers } from "./escaping.js";
import { isAlive, program, scratch, until } from "./wrapped.js";

describe("a mark by a limit", () => {
  it("is carried by an exec inside, and by one inside that, but not by the next command", () => {
    const outer = newLimitMark(null)!;
    const inner = newLimitMark(outer)!;
    const innermost = newLimitMark(inner)!;
    const other = newLimitMark(outer)!;
    expect([outer, inner, innermost].map((limit) => carriesLimit(limit, outer))).toEqual([true, true, true]);
    expect([outer, inner, innermost].map((limit) => carriesLimit(limit, inner))).toEqual([false, true, true]);
    expect([inner, innermost].map((limit) => carriesLimit(limit, innermost))).toEqual([false, true]);
    expect(carriesLimit(other, inner)).toBe(other === inner);
    expect(carriesLimit(null, outer)).toBe(false);
    expect(newLimitMark(innermost)).toBeUndefined();
    // Set by an administrator: nothing below it is ours to use.
    expect(newLimitMark(65_536n)).toBeUndefined();
    expect(outer).toBeLessThan(2n ** 63n);
  });
});

const lacking = hasProc() ? lackingUsers() : "needs /proc";

describe.skipIf(lacking !== undefined)(`the processes of a command (${lacking ?? "found in /proc"})`, () => {
  const started: ChildProcess[] = [];
  const files: string[] = [];

  afterEach(async () => {
    for (const child of started.splice(0)) if (groupExists(child.pid!)) process.kill(-child.pid!, "SIGKILL");
    for (const file of files.splice(0)) writeFileSync(file, "");
  });

  /** Starts a script of perl as the watchdog would, known by `limit` or by its environment. */
  function start(script: string, limit?: bigint, last?: () => undefined) {
    const traces = { mark: `mark-${Math.random()}`, limit };
    const tracker = new ProcessTracker(traces, last);
    const stop = join(scratch(), "stop");
    files.push(stop);
    const words = limit === undefined ? [] : ["prlimit", `--locks=${limit}:${limit}`];
    // Ends by itself, should the test fail.
    const prelude = `use POSIX qw(setsid _exit); use Time::HiRes qw(usleep); sub ok { -e '${stop}' and _exit(0) }`;
    const [file, ...args] = [...words, "perl", "-e", `${prelude} ${script}`];
    const child = spawn(file, args, {
      detached: true,
      stdio: "ignore",
      env: { PATH: process.env["PATH"], [MARK_VARIABLE]: traces.mark },
    });
    started.push(child);
    tracker.adopt(child.pid!);
    return { tracker, child, stop };
  }

  const gone = (tracker: ProcessTracker): Promise<void> =>
    until(() => {
      tracker.kill(20);
      return tracker.state() === "gone";
    }, 10_000);
  const exited = (child: ChildProcess): Promise<unknown> =>
    new Promise((resolve) => (child.exitCode === null ? child.once("exit", resolve) : resolve(0)));
  const CHAIN = "fork and _exit(0); setsid; while (1) { ok(); usleep(PAUSE); fork and _exit(0); setsid }";

  it.each([20_000, 2_000, 300])(
    "a chain that starts a successor in a new session every %i us is not taken for gone, and is ended",
    async (pause) => {
      const { tracker, child } = start(CHAIN.replace("PAUSE", String(pause)), newLimitMark(null));
      await exited(child);
      for (let i = 0; i < 100; i++) expect(tracker.state()).toBe("alive");
      await gone(tracker);
      // Nothing is killed any more: a link that was left would go on, and be seen.
      await until(() => tracker.state() === "gone", 10_000);
    },
  );

  it("are found by reading all of /proc where the kernel does not tell the last number", async () => {
    const { tracker, child } = start(CHAIN.replace("PAUSE", "200_000"), newLimitMark(null), () => undefined);
    await exited(child);
    expect(tracker.state()).toBe("alive");
    await gone(tracker);
    expect(tracker.lookMs).toBeGreaterThan(0);
  });

  it("are found by reading all of /proc where the number told is not the kernel's", async () => {
    const traces = { mark: "none", limit: undefined };
    const tracker = new ProcessTracker(traces, () => 1);
    const child = spawn("sleep", ["20"], { detached: true, stdio: "ignore" });
    started.push(child);
    tracker.adopt(child.pid!);
    expect(tracker.state()).toBe("alive");
    await gone(tracker);
  });

  it("whose numbers were counted before /proc showed them are looked at again", async () => {
    const limit = newLimitMark(null)!;
    let ahead = 0;
    const tracker = new ProcessTracker({ mark: "none", limit }, () => lastPid()! + ahead);
    // Numbers that nobody has yet, as if their processes were held up in being started.
    ahead = 200;
    await until(() => tracker.look() !== "more");
    const child = spawn("prlimit", [`--locks=${limit}:${limit}`, "sleep", "20"], {
      detached: true,
      stdio: "ignore",
    });
    started.push(child);
    await until(() => readLocksLimit(child.pid!) === limit);
    expect(tracker.state()).toBe("alive");
    await gone(tracker);
    expect(isAlive(child.pid!)).toBe(false);
  });

  it("are found at once behind thousands of numbers that wait to be examined", async () => {
    const limit = newLimitMark(null)!;
    const readings = [Math.max(1, lastPid()! - 30_000)];
    const tracker = new ProcessTracker({ mark: "none", limit }, () => readings.pop() ?? lastPid());
    const words = [`--locks=${limit}:${limit}`, "sleep", "20"];
    const child = spawn("prlimit", words, { detached: true, stdio: "ignore" });
    started.push(child);
    await until(() => readLocksLimit(child.pid!) === limit);
    const found: number[] = [];
    // Others may be started meanwhile: it is among the newest, not the very newest.
    for (let looks = 0; looks < 5; looks++) tracker.look((pid) => void found.push(pid));
    expect(found).toEqual([child.pid]);
  });

  it("by their parent alone: parents are examined before their children", async () => {
    const told = join(scratch(), "pid");
    const orphan = `open(my $f, '>', '${told}'); print $f $$; close $f; exec(qw(/usr/bin/env -i setsid sleep 20))`;
    const { tracker, child } = start(`fork and _exit(0); setsid; fork or do { ${orphan} }; sleep 20`);
    await exited(child);
    const pid = (): number => (existsSync(told) ? Number(readFileSync(told, "utf8")) : 0);
    await until(() => pid() > 0 && readFileSync(`/proc/${pid()}/comm`, "utf8") === "sleep\n");
    await until(() => tracker.look() !== "more");
    await gone(tracker);
    expect(isAlive(pid())).toBe(false);
  });

  it("by the environment alone: found while it keeps it", async () => {
    const { tracker, child } = start("fork and _exit(0); setsid; while (1) { ok(); usleep(2000) }");
    await exited(child);
    expect(tracker.state()).toBe("alive");
    await gone(tracker);
  });

  it("that may not be examined are not known, which is not gone; and are not killed", () => {
    // By a process of that user: root may examine everything.
    const [file, ...args] = [...asOther(), process.execPath, program("unknown")];
    const { status, stdout } = spawnSync(file, args, { encoding: "utf8", timeout: 20_000 });
    expect({ status, stdout }).toEqual({ status: 0, stdout: "unknown unknown perl gone\n" });
  });

  it("older than the command are never of it, whatever they carry", async () => {
    const mark = newLimitMark(null)!;
    const old = start("while (1) { ok(); usleep(2000) }", mark);
    await new Promise((resolve) => setTimeout(resolve, 50));
    const { tracker, child } = start("exit 0", mark);
    await exited(child);
    await gone(tracker);
    expect(isAlive(old.child.pid!)).toBe(true);
  });
});
