/** `conclave lock`: a command under a lock, as real processes. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Cli, conclave, inProcess, scratch } from "./process.js";

const holder = (directory: string, script: string, ...flags: string[]): Cli =>
  new Cli(["lock", "deploy", "--lock-dir", directory, "--ttl", "2s", ...flags, "--", "sh", "-c", script]);

/** Alive, and not a zombie. */
function alive(pid: number): boolean {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

describe("conclave lock", () => {
  it("runs the command with the token in its environment and passes its exit code on", async () => {
    const directory = scratch();
    const script = 'echo "$CONCLAVE_ELECTION $CONCLAVE_TOKEN $CONCLAVE_ID"; exit 7';
    const first = await conclave([
      "lock",
      "deploy",
      "--lock-dir",
      directory,
      "--id",
      "me",
      "--",
      "sh",
      "-c",
      script,
    ]);
    expect(first.code).toBe(7);
    expect(first.err).toBe(`conclave: lock "deploy" lives in ${directory}`);
    expect(first.out).toMatch(/^deploy \d+ me-[0-9a-f]+$/);
    const second = await conclave(["lock", "deploy", "--lock-dir", directory, "--", "sh", "-c", script]);
    const token = (text: string): bigint => BigInt(text.split(" ")[1]!);
    expect(token(second.out)).toBeGreaterThan(token(first.out));
  });

  it("one at a time: --try and --timeout give up with 1, others wait", async () => {
    const directory = scratch();
    const first = holder(directory, "echo in; sleep 30");
    await first.line(/^in$/);
    const tried = await conclave([
      "lock",
      "deploy",
      "--quiet",
      "--lock-dir",
      directory,
      "--try",
      "--",
      "true",
    ]);
    expect(tried).toEqual({ code: 1, out: "", err: 'conclave: lock "deploy" is held by someone else' });
    const timed = await conclave([
      "lock",
      "deploy",
      "--lock-dir",
      directory,
      "--timeout",
      "2s",
      "--",
      "true",
    ]);
    expect(timed.code).toBe(1);
    const second = holder(directory, "echo in too");
    first.kill("SIGTERM");
    expect(await first.exit).toEqual({ code: 143, signal: null });
    expect(await second.exit).toEqual({ code: 0, signal: null });
    expect(second.out).toEqual(["in too"]);
  });

  it("ends the command and what it started when it is told to stop", async () => {
    const directory = scratch();
    const first = holder(directory, "trap '' TERM; sleep 60 & echo $!; wait; wait");
    const pid = Number(await first.line(/^\d+$/));
    expect(alive(pid)).toBe(true);
    first.kill("SIGINT");
    await first.exit;
    expect(alive(pid)).toBe(false);
  });

  it("ends the command when the lock is lost", async () => {
    const directory = scratch();
    const first = holder(directory, "echo in; sleep 60");
    await first.line(/^in$/);
    first.kill("SIGSTOP");
    const marker = join(directory, "taken");
    const second = holder(directory, `touch ${marker}`);
    expect(await second.exit).toEqual({ code: 0, signal: null });
    expect(existsSync(marker)).toBe(true);
    first.kill("SIGCONT");
    expect(await first.exit).toEqual({ code: 1, signal: null });
    expect(first.err.join("\n")).toMatch(/lock "deploy" was lost/);
  });

  it("bad usage is 2, with a line that helps", async () => {
    expect(await inProcess(["lock", "deploy"])).toEqual({
      code: 2,
      out: "",
      err: "conclave: write the command after --: conclave lock NAME -- command",
    });
    const both = await inProcess([
      "lock",
      "x",
      "--try",
      "--timeout",
      "1s",
      "--lock-dir",
      scratch(),
      "--",
      "true",
    ]);
    expect(both).toMatchObject({
      code: 2,
      err: "conclave: --try and --timeout exclude each other: give one",
    });
    const unknown = await conclave(["lock", "x", "--lock-dir", scratch(), "--", "no-such-command-here"]);
    expect(unknown.code).toBe(127);
    expect(unknown.err).toBe('conclave: "no-such-command-here" not found; the lock was not asked for');
  });

  it("a store that cannot be asked is not a lock that is held: 3, and it says so while it waits", async () => {
    const nobody = ["--backend", "etcd://127.0.0.1:1", "--", "true"];
    const timed = await conclave(["lock", "deploy", "--quiet", "--timeout", "1s", ...nobody]);
    expect(timed.code).toBe(3);
    expect(timed.err.split("\n")).toEqual([
      expect.stringMatching(/^conclave: cannot reach etcd .*; trying again$/),
      expect.stringMatching(
        /^conclave: timed out waiting for lock "deploy"; .* not known: cannot reach etcd/,
      ),
    ]);
    const tried = await conclave(["lock", "deploy", "--quiet", "--try", ...nobody]);
    expect(tried.code).toBe(3);
    expect(tried.err).toMatch(/^conclave: cannot reach etcd [^\n]*$/);
  });

  it("what does not pass is told once, and not as if it were tried again", async () => {
    const url = "etcd://127.0.0.1:1?ca=/nowhere/ca.pem";
    const { code, err } = await conclave(["lock", "deploy", "--quiet", "--backend", url, "--", "true"]);
    expect(code).toBe(2);
    expect(err).toMatch(/^conclave: cannot read the ca file for etcd: [^\n]*$/);
    expect(err).not.toContain("trying again");
  });
});
