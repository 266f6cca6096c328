/** Rows I and E of the table in docs/guide/exec.md. */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { CLI, exec, program, quoted, scratch, Wrapped } from "./wrapped.js";

const sh = (script: string): string[] => ["--", "sh", "-c", script];
const hasScript = spawnSync("script", ["--version"]).status === 0;
const onTerminal = (args: readonly string[]): Wrapped => new Wrapped(args, { terminal: true });

describe("streams", () => {
  it("I1 stdin, stdout and stderr are the command's", async () => {
    const wrapped = new Wrapped(
      ["x", "--lock-dir", scratch(), "--log", "none", ...sh("cat; echo oops >&2")],
      {
        stdin: "pipe",
      },
    );
    wrapped.child.stdin!.end("one\ntwo\n");
    expect(await wrapped.exit).toBe(0);
    expect(wrapped.out).toEqual(["one", "two"]);
    expect(wrapped.err).toEqual(["oops"]);
  });

  it("I2 ten megabytes through a slow reader arrive whole: nobody makes the pipe non-blocking", async () => {
    const directory = scratch();
    const make = "head -c 10000000 /dev/zero | tr '\\0' x";
    const command = `'${process.execPath}' '${CLI}' exec x --lock-dir '${directory}' -- sh -c "${make}; echo ok >&2"`;
    const slow = `'${process.execPath}' -e 'setTimeout(() => process.stdin.pipe(process.stdout), 700)' | sha256sum`;
    const { stdout, stderr } = spawnSync("sh", ["-c", `${command} | ${slow}`], { encoding: "utf8" });
    expect(stderr).toMatch(/^ok$/m);
    expect(stdout.split(" ")[0]).toBe(createHash("sha256").update("x".repeat(10_000_000)).digest("hex"));
  });

  it("I3 a reader of stderr that does not read holds up the command, not the renewals", async () => {
    const directory = scratch();
    // Fills the pipe, ends, and so makes the wrapper write to it too.
    const flood = 'echo "$CONCLAVE_TOKEN"; timeout 1 head -c 1000000 /dev/zero >&2; exit 1';
    const flags = ["--lock-dir", directory, "--ttl", "2s", "--on-exit", "restart"];
    const wrapped = new Wrapped(["x", ...flags, ...sh(flood)]);
    wrapped.child.stderr!.pause();
    await wrapped.line(/^\d+$/, { nth: 4 });
    expect(new Set(wrapped.out).size).toBe(1);
  });

  it.skipIf(!hasScript)("I4 a terminal stays a terminal; it is not the controlling one", async () => {
    const wrapped = onTerminal([
      ...["x", "--lock-dir", scratch(), "--log", "none"],
      ...sh(
        'test -t 0 && test -t 1 && test -t 2 && echo all; (: </dev/tty) 2>/dev/null || echo none; read l; echo "<$l>"',
      ),
    ]);
    await wrapped.line(/^none/);
    wrapped.child.stdin!.write("typed\n");
    await wrapped.line(/^<typed>/);
    expect(await wrapped.exit).toBe(0);
    expect(wrapped.out.map((line) => line.trim())).toContain("all");
  });

  it.skipIf(!hasScript)("I5 Ctrl-C on a terminal: one SIGINT to the command", async () => {
    const wrapped = onTerminal([
      ...["x", "--lock-dir", scratch(), "--log", "none", "--"],
      ...[process.execPath, program("signalled"), "parent", "child"],
    ]);
    await Promise.all([wrapped.line(/^parent up/), wrapped.line(/^child up/)]);
    wrapped.child.stdin!.write("\u0003");
    await Promise.all([wrapped.line(/parent SIGINT/), wrapped.line(/child SIGINT/)]);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(wrapped.out.filter((line) => /SIGINT/.test(line))).toHaveLength(2);
    wrapped.child.stdin!.write("\u0003");
    await wrapped.line(/parent SIGINT/, { nth: 2 });
  });

  it.skipIf(!hasScript)("I6 Ctrl-Z on a terminal: nothing", async () => {
    const directory = scratch();
    const wrapped = onTerminal([
      ...["x", "--lock-dir", directory, "--log", "none", "--ttl", "2s"],
      ...sh("echo up; read l; echo $l"),
    ]);
    await wrapped.line(/^up/);
    wrapped.child.stdin!.write("\u001a");
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    wrapped.child.stdin!.write("still here\n");
    // Once as the terminal's echo, once from the command.
    await wrapped.line(/still here/, { nth: 2 });
    expect(await wrapped.exit).toBe(0);
  });

  it("I7 no other descriptor is passed on", async () => {
    const line = quoted([
      process.execPath,
      CLI,
      "exec",
      "x",
      "--lock-dir",
      scratch(),
      "--log",
      "none",
      "--",
      "ls",
      "/proc/self/fd",
    ]);
    const { stdout } = spawnSync("sh", ["-c", `${line} 5</dev/null`], { encoding: "utf8" });
    expect(stdout.split("\n")).toEqual(expect.arrayContaining(["0", "1", "2"]));
    expect(stdout.split("\n")).not.toContain("5");
  });
});

describe("environment", () => {
  const print = ["--", process.execPath, "-e", "console.log(JSON.stringify(process.env))"];
  const environmentOf = async (
    flags: readonly string[],
    env: NodeJS.ProcessEnv,
  ): Promise<NodeJS.ProcessEnv> => {
    const { code, out } = await exec(["x", "--log", "none", ...flags, ...print], { env });
    expect(code).toBe(0);
    return JSON.parse(out) as NodeJS.ProcessEnv;
  };

  it("E1 CONCLAVE_TOKEN, CONCLAVE_ELECTION and CONCLAVE_ID are those of the term; the rest is inherited", async () => {
    const wrapped = new Wrapped(["a b", "--id", "web-1", "--lock-dir", scratch(), ...print], {
      env: { "odd.name": "kept", PLAIN: "kept too" },
    });
    const token = await wrapped.elected();
    expect(await wrapped.exit).toBe(0);
    const env = JSON.parse(wrapped.out.join("")) as NodeJS.ProcessEnv;
    expect(env).toMatchObject({ CONCLAVE_ELECTION: "a b", CONCLAVE_TOKEN: token.toString() });
    expect(env["CONCLAVE_ID"]).toMatch(/^web-1-[0-9a-f]{16}$/);
    expect(env).toMatchObject({ "odd.name": "kept", PLAIN: "kept too" });
    expect(env).not.toHaveProperty("NODE_CHANNEL_FD");
  });

  const passwords = (): NodeJS.ProcessEnv => ({
    CONCLAVE_BACKEND: `file://${scratch()}`,
    ETCD_USERNAME: "root",
    ETCD_PASSWORD: "hunter22",
  });

  it("E2 CONCLAVE_*, ETCD_USERNAME and ETCD_PASSWORD are withheld", async () => {
    const secrets = passwords();
    const env = await environmentOf([], { ...secrets, CONCLAVE_OTHER: "x" });
    for (const name of [...Object.keys(secrets), "CONCLAVE_OTHER"]) expect(env).not.toHaveProperty(name);
    expect(JSON.stringify(env)).not.toContain("hunter22");
  });

  it("E3 --pass-env passes them on", async () => {
    const secrets = passwords();
    const env = await environmentOf(
      ["--pass-env", "CONCLAVE_BACKEND,ETCD_PASSWORD", "--pass-env", "ETCD_USERNAME"],
      secrets,
    );
    expect(env).toMatchObject(secrets);
  });
});
