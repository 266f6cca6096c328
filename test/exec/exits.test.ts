/** Rows X and P of the table in docs/guide/exec.md. */
import { chmodSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { CLI, exec, isAlive, program, scratch, until, Wrapped } from "./wrapped.js";

const sh = (script: string): string[] => ["--", "sh", "-c", script];
const TTL = ["--ttl", "2s"];

describe("exit codes", () => {
  it.each([0, 1, 37, 255])("X1 a command that exits with %i", async (code) => {
    expect((await exec(["x", "--lock-dir", scratch(), ...sh(`exit ${code}`)])).code).toBe(code);
  });

  it.each([
    ["TERM", 143],
    ["KILL", 137],
    ["SEGV", 139],
  ] as const)("X2 a command that dies of SIG%s", async (signal, code) => {
    expect((await exec(["x", "--lock-dir", scratch(), ...sh(`kill -${signal} $$`)])).code).toBe(code);
  });

  it("X3 a command that does not exist: 127, one that cannot be executed: 126, and nobody stands", async () => {
    const directory = scratch();
    const file = join(directory, "file");
    writeFileSync(file, "#!/bin/sh\necho run\n");
    const lock = join(directory, "lock");
    const run = (command: string): ReturnType<typeof exec> => exec(["x", "--lock-dir", lock, "--", command]);
    expect((await run("no-such-command")).code).toBe(127);
    expect((await run("./no-such-command")).code).toBe(127);
    expect((await run(file)).code).toBe(126);
    expect((await run(directory)).code).toBe(126);
    expect(readdirSync(directory)).toEqual(["file"]);
    chmodSync(file, 0o755);
    expect(await run(file)).toMatchObject({ code: 0, out: "run" });
  });

  it("X4 a command that vanishes while waiting: 127, and leadership is given up", async () => {
    const directory = scratch();
    const file = join(directory, "file");
    writeFileSync(file, "#!/bin/sh\necho run\n");
    chmodSync(file, 0o755);
    const lock = ["--lock-dir", join(directory, "lock")];
    const leader = new Wrapped(["x", ...lock, ...TTL, "--", "sleep", "60"]);
    await leader.elected();
    const waiting = new Wrapped(["x", ...lock, ...TTL, "--", file]);
    await waiting.line(/NEW LEADER/, { from: "err" });
    rmSync(file);
    leader.kill("SIGTERM");
    expect(await waiting.exit).toBe(127);
    expect((await exec(["x", ...lock, "--try", "--", "true"])).code).toBe(0);
  });

  it("X5 --try while someone else leads: 121", async () => {
    const lock = ["--lock-dir", scratch()];
    const leader = new Wrapped(["x", ...lock, "--", "sleep", "60"]);
    await leader.elected();
    expect(await exec(["x", ...lock, "--try", "--", "echo", "never"])).toMatchObject({ code: 121, out: "" });
  });

  it("X6 --timeout passes: 124", async () => {
    const lock = ["--lock-dir", scratch()];
    const leader = new Wrapped(["x", ...lock, "--", "sleep", "60"]);
    await leader.elected();
    const late = await exec(["x", ...lock, "--timeout", "300ms", "--", "echo", "never"]);
    expect(late).toMatchObject({ code: 124, out: "" });
    expect(await exec(["y", ...lock, "--timeout", "20s", "--", "echo", "in time"])).toMatchObject({
      code: 0,
      out: "in time",
    });
  });

  it("X7 leadership lost with --on-loss exit, --once or --try: 120", async () => {
    for (const flags of [["--on-loss", "exit"], ["--once"], ["--try"]]) {
      const wrapped = new Wrapped(["x", "--lock-dir", scratch(), ...TTL, ...flags, "--", "sleep", "60"]);
      await wrapped.elected();
      const watchdog = await wrapped.watchdog();
      wrapped.kill("SIGSTOP");
      // The watchdog has ended the command when its channel has something to tell; then we wake up too late.
      await new Promise((resolve) => setTimeout(resolve, 2_200));
      expect(isAlive(watchdog)).toBe(true);
      wrapped.kill("SIGCONT");
      expect(await wrapped.exit, flags.join(" ")).toBe(120);
    }
  });

  it("X8 the store cannot be asked, with --try: 125", async () => {
    const directory = scratch();
    writeFileSync(join(directory, "elections"), "not a directory");
    const { code, err } = await exec(["x", "--lock-dir", directory, "--try", "--", "echo", "never"]);
    expect(code).toBe(125);
    expect(err).toMatch(/^conclave: /m);
  });

  it("X9 bad usage: 2, one line, nothing done", async () => {
    const directory = join(scratch(), "inner");
    const bad: [string[], RegExp][] = [
      [["x"], /write the command after --/],
      [["x", "ls", "-l"], /unknown option '-l'.*come after --/],
      [
        ["x", "--ttl", "10s", "--grace", "5s", "--", "true"],
        /--grace does not fit: .*= 10\.933s.*at most 2\.566s/,
      ],
      [["x", "--once", "--on-exit", "restart", "--", "true"], /--once is one term/],
      [["x", "--try", "--on-loss", "wait", "--", "true"], /--try is one term/],
      [["x", "--try", "--timeout", "1s", "--", "true"], /--try does not wait/],
      [["x", "--on-exit", "explode", "--", "true"], /Allowed choices are stop, resign, restart/],
      [["x", "--pass-env", "A=B", "--", "true"], /names of environment variables/],
      [["x", "--grace", "1", "--", "true"], /It has no unit/],
    ];
    for (const [args, says] of bad) {
      const { code, out, err } = await exec([args[0]!, "--lock-dir", directory, ...args.slice(1)]);
      expect(err, args.join(" ")).toMatch(says);
      expect(err.split("\n")).toHaveLength(1);
      expect({ code, out }).toEqual({ code: 2, out: "" });
    }
  });
});

describe("what comes after", () => {
  it("P1 --on-exit stop (default): leadership is given up, then we exit", async () => {
    const lock = ["--lock-dir", scratch()];
    const first = await exec(["x", ...lock, "--", "echo", "once"]);
    expect(first).toMatchObject({ code: 0, out: "once" });
    expect(await exec(["x", ...lock, "--try", "--", "echo", "next"])).toMatchObject({ code: 0, out: "next" });
  });

  it("P2 --on-exit resign: leadership is given up, and we campaign again", async () => {
    const lock = ["--lock-dir", scratch(), "--retry", "100ms"];
    const flags = ["--on-exit", "resign", ...sh('echo "$CONCLAVE_TOKEN"')];
    const wrapped = new Wrapped(["x", ...lock, ...flags]);
    await wrapped.line(/^\d+$/, { nth: 3 });
    wrapped.kill("SIGTERM");
    // The command's own, if it was just running.
    expect([0, 143]).toContain(await wrapped.exit);
    const tokens = wrapped.out.map(BigInt);
    expect(tokens.every((token, i) => i === 0 || token > tokens[i - 1]!)).toBe(true);
  });

  it("P3 --on-exit restart: the command is started again in the same term", async () => {
    const wrapped = new Wrapped([
      ...["x", "--lock-dir", scratch(), "--on-exit", "restart"],
      ...sh('echo "$CONCLAVE_TOKEN"; exit 9'),
    ]);
    await wrapped.line(/^\d+$/, { nth: 3 });
    wrapped.kill("SIGINT");
    expect([9, 130]).toContain(await wrapped.exit);
    expect(new Set(wrapped.out).size).toBe(1);
  });

  it("P4 --on-loss wait (default): we campaign again, and run the command again under a higher token", async () => {
    const wrapped = new Wrapped([
      ...["x", "--lock-dir", scratch(), ...TTL],
      ...sh('echo "$CONCLAVE_TOKEN"; exec sleep 60'),
    ]);
    await wrapped.line(/^\d+$/);
    wrapped.kill("SIGSTOP");
    await new Promise((resolve) => setTimeout(resolve, 2_200));
    wrapped.kill("SIGCONT");
    await wrapped.line(/^\d+$/, { nth: 2 });
    expect(BigInt(wrapped.out[1]!)).toBeGreaterThan(BigInt(wrapped.out[0]!));
  });

  it("P5 what the command leaves running in its group: SIGTERM, then SIGKILL, before leadership is given up", async () => {
    const directory = scratch();
    const lock = ["--lock-dir", directory, ...TTL];
    const deaf = `"${process.execPath}" "${program("signalled")}" left &`;
    const wrapped = new Wrapped(["x", ...lock, "--grace", "400ms", ...sh(`${deaf} sleep 1; exit 3`)]);
    const left = Number((await wrapped.line(/^left up/)).split(" ")[2]);
    const heir = new Wrapped(["x", ...lock, "--", "echo", "heir"]);
    await wrapped.line(/^left SIGTERM/);
    expect(isAlive(left)).toBe(true);
    expect(heir.out).toEqual([]);
    expect(await wrapped.exit).toBe(3);
    expect(isAlive(left)).toBe(false);
    expect(await heir.exit).toBe(0);
  });

  it("P6 what has left the group, even the session: killed too (Linux)", async () => {
    const daemon = `setsid "${process.execPath}" "${program("signalled")}" daemon &`;
    const wrapped = new Wrapped(["x", "--lock-dir", scratch(), ...TTL, ...sh(`${daemon} sleep 60`)]);
    const pid = Number((await wrapped.line(/^daemon up/)).split(" ")[2]);
    wrapped.kill("SIGKILL");
    await until(() => !isAlive(pid), 5_000);
  });

  it("P7 exec inside exec: two offices, one command; losing either ends it", async () => {
    const directory = scratch();
    const outer = new Wrapped([
      ...["outer", "--lock-dir", directory, ...TTL, "--"],
      ...[process.execPath, CLI],
      ...[
        "exec",
        "inner",
        "--lock-dir",
        directory,
        ...TTL,
        "--",
        process.execPath,
        program("signalled"),
        "command",
      ],
    ]);
    const pid = Number((await outer.line(/^command up/)).split(" ")[2]);
    outer.kill("SIGUSR1");
    await outer.line(/^command SIGUSR1/);
    outer.kill("SIGKILL");
    await until(() => !isAlive(pid), 2_000);
  });
});
