/** Rows S of the table in docs/guide/exec.md. */
import { describe, expect, it } from "vitest";
import { exec, isAlive, program, scratch, until, Wrapped } from "./wrapped.js";

const SIGNALLED = ["--", process.execPath, program("signalled")];
const TTL = ["--ttl", "2s"];

/** Leads, with a command and its child in one process group, both of which say what they hear. */
async function family(
  directory: string,
  flags: readonly string[] = [],
  env: NodeJS.ProcessEnv = {},
): Promise<{ wrapped: Wrapped; pids: number[] }> {
  const wrapped = new Wrapped(
    ["x", "--lock-dir", directory, ...TTL, ...flags, ...SIGNALLED, "parent", "child"],
    {
      env,
    },
  );
  const ups = await Promise.all([wrapped.line(/^parent up/), wrapped.line(/^child up/)]);
  return { wrapped, pids: ups.map((line) => Number(line.split(" ")[2])) };
}

describe("signals", () => {
  it("S1 TERM, INT, HUP, QUIT, USR1, USR2, WINCH reach the whole process group, and leadership stays", async () => {
    const { wrapped, pids } = await family(scratch());
    const signals = ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH"] as const;
    for (const signal of signals) {
      wrapped.kill(signal);
      await Promise.all([
        wrapped.line(new RegExp(`^parent ${signal}`)),
        wrapped.line(new RegExp(`^child ${signal}`)),
      ]);
    }
    expect(pids.every(isAlive)).toBe(true);
    expect(wrapped.out.filter((line) => !line.includes("up")).length).toBe(2 * signals.length);
    expect(wrapped.err.join()).not.toMatch(/RESIGNED|LOST/);
  });

  it("S2 leadership is kept until the command has ended, then given up; the exit code is the command's", async () => {
    const directory = scratch();
    const { wrapped } = await family(directory, [], { EXIT_ON: "SIGUSR1:7" });
    const heir = new Wrapped(["x", "--lock-dir", directory, ...TTL, "--", "echo", "heir"]);
    await heir.line(/NEW LEADER/, { from: "err" });
    wrapped.kill("SIGTERM");
    await wrapped.line(/^parent SIGTERM/);
    // Longer than a lease: it is renewed although an end was asked for.
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    expect(heir.out).toEqual([]);
    wrapped.kill("SIGUSR1");
    expect(await wrapped.exit).toBe(7);
    expect(await heir.exit).toBe(0);
    expect(heir.out).toEqual(["heir"]);
  });

  it.each([
    ["SIGTERM", 143],
    ["SIGINT", 130],
    ["SIGHUP", 129],
    ["SIGQUIT", 131],
  ] as const)("S3 %s while waiting withdraws, exit %i", async (signal, code) => {
    const directory = scratch();
    const { wrapped } = await family(directory);
    const waiting = new Wrapped(["x", "--lock-dir", directory, ...TTL, "--", "echo", "never"]);
    await waiting.line(/NEW LEADER/, { from: "err" });
    waiting.kill(signal);
    expect(await waiting.exit).toBe(code);
    expect(waiting.out).toEqual([]);
    expect(wrapped.err.join()).not.toMatch(/RESIGNED|LOST/);
  });

  it("S4 USR1, USR2, WINCH while waiting do nothing", async () => {
    const directory = scratch();
    const { wrapped } = await family(directory);
    const waiting = new Wrapped(["x", "--lock-dir", directory, ...TTL, "--", "echo", "now"]);
    await waiting.line(/NEW LEADER/, { from: "err" });
    for (const signal of ["SIGUSR1", "SIGUSR2", "SIGWINCH"] as const) waiting.kill(signal);
    wrapped.kill("SIGKILL");
    expect(await waiting.exit).toBe(0);
    expect(waiting.out).toEqual(["now"]);
  });

  it("S5 a signal at the very moment of the election ends it, and nothing is left", async () => {
    const directory = scratch();
    for (let i = 0; i < 5; i++) {
      const wrapped = new Wrapped(["x", "--lock-dir", directory, ...TTL, "--", "sleep", "60"]);
      await wrapped.elected();
      wrapped.kill("SIGTERM");
      expect(await wrapped.exit).toBe(143);
    }
    // At once: leadership was given up each time.
    expect((await exec(["x", "--lock-dir", directory, "--try", "--", "true"])).code).toBe(0);
  });

  it("S6 a command that dies of a SIGHUP that was passed on is not restarted", async () => {
    const wrapped = new Wrapped([
      ...["x", "--lock-dir", scratch(), ...TTL, "--on-exit", "restart", "--"],
      ...["sh", "-c", "echo up; exec sleep 60"],
    ]);
    await wrapped.line(/up/);
    wrapped.kill("SIGHUP");
    expect(await wrapped.exit).toBe(129);
  });
});

describe("the wrapper or its watchdog, killed or stopped", () => {
  it("S7 SIGKILL to the wrapper: the whole group is dead within 250 ms", async () => {
    const times: number[] = [];
    for (let i = 0; i < 5; i++) {
      const { wrapped, pids } = await family(scratch());
      const watchdog = await wrapped.watchdog();
      const at = performance.now();
      wrapped.kill("SIGKILL");
      await until(() => !pids.some(isAlive));
      times.push(performance.now() - at);
      await until(() => !isAlive(watchdog));
    }
    expect(times.toSorted((a, b) => a - b)[2]).toBeLessThan(250);
  });

  it("S8 SIGSTOP to the wrapper: SIGTERM, then SIGKILL, before its lease ends", async () => {
    const directory = scratch();
    const { wrapped, pids } = await family(directory, ["--grace", "300ms"]);
    const heir = new Wrapped([
      "x",
      "--lock-dir",
      directory,
      ...TTL,
      "--",
      "sh",
      "-c",
      "echo heir; exec sleep 60",
    ]);
    await heir.line(/NEW LEADER/, { from: "err" });
    wrapped.kill("SIGSTOP");
    await wrapped.line(/^child SIGTERM/);
    expect(heir.out).toEqual([]);
    await until(() => !pids.some(isAlive));
    expect(heir.out).toEqual([]);
    await heir.line(/heir/);
    wrapped.kill("SIGCONT");
    // What it finds first when it wakes is chance: that its time is up, or that its command has ended, and then it resigns.
    await wrapped.line(/LEADERSHIP LOST|RESIGNED/, { from: "err" });
    await wrapped.line(/NEW LEADER/, { from: "err" });
  });

  it("S9 SIGKILL to the watchdog: the wrapper kills the group, resigns, and campaigns again", async () => {
    const { wrapped, pids } = await family(scratch());
    const first = await wrapped.elected();
    process.kill(await wrapped.watchdog(), "SIGKILL");
    await until(() => !pids.some(isAlive), 2_000);
    await wrapped.line(/^child up/, { nth: 2 });
    expect(await wrapped.elected(2)).toBeGreaterThan(first);
    expect(wrapped.err.join("\n")).toMatch(/watchdog was lost/);
  });

  it("S10 SIGSTOP to the watchdog: it is noticed, and the same happens", async () => {
    const { wrapped, pids } = await family(scratch());
    const watchdog = await wrapped.watchdog();
    process.kill(watchdog, "SIGSTOP");
    await until(() => !pids.some(isAlive), 10_000);
    // The backstop ends the command at the deadline; the wrapper may take a little longer to miss its watchdog.
    await until(() => !isAlive(watchdog), 10_000);
    await wrapped.line(/^child up/, { nth: 2 });
  });

  it("S11 other signals to the watchdog: nothing", async () => {
    const { wrapped, pids } = await family(scratch());
    const watchdog = await wrapped.watchdog();
    for (const signal of ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"] as const) {
      process.kill(watchdog, signal);
    }
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect([watchdog, ...pids].every(isAlive)).toBe(true);
    expect(wrapped.out.filter((line) => /SIG/.test(line))).toEqual([]);
  });
});
