/** Rows N of the table in docs/guide/exec.md: as process 1 of a pid namespace, as in a container without an init. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { exec, program, scratch, until, Wrapped } from "./wrapped.js";

const THROUGH = ["unshare", "--pid", "--fork", "--mount-proc"];
const able = spawnSync(THROUGH[0]!, [...THROUGH.slice(1), "true"]).status === 0;
const sh = (script: string): string[] => ["--", "sh", "-c", script];

/** Our number for the process that is 1 inside. */
async function insider(wrapped: Wrapped): Promise<number> {
  const children = (): string =>
    readFileSync(`/proc/${wrapped.pid}/task/${wrapped.pid}/children`, "latin1").trim();
  await until(() => children() !== "");
  return Number(children());
}

describe.skipIf(!able)("as process 1 (skipped where pid namespaces cannot be made: needs root)", () => {
  it("N1 signals reach the command", async () => {
    const wrapped = new Wrapped(
      ["x", "--lock-dir", scratch(), "--", process.execPath, program("signalled"), "parent", "child"],
      { through: THROUGH, env: { EXIT_ON: "SIGTERM:37" } },
    );
    await Promise.all([wrapped.line(/^parent up/), wrapped.line(/^child up/)]);
    const pid = await insider(wrapped);
    process.kill(pid, "SIGHUP");
    await wrapped.line(/^child SIGHUP/);
    process.kill(pid, "SIGTERM");
    await wrapped.line(/^parent SIGTERM/);
    expect(await wrapped.exit).toBe(37);
  });

  it("N2 exit codes are the command's", async () => {
    const options = { through: THROUGH };
    expect((await exec(["x", "--lock-dir", scratch(), ...sh("test $$ -ne 1; exit 37")], options)).code).toBe(
      37,
    );
    expect((await exec(["x", "--lock-dir", scratch(), ...sh("kill -SEGV $$")], options)).code).toBe(139);
  });

  it("N3 zombies that nobody reaps do not hold anything up", async () => {
    const orphans = "for i in 1 2 3; do (sleep 0.2 &) ; done; sleep 1; exit 5";
    const wrapped = new Wrapped(["x", "--lock-dir", scratch(), "--grace", "2s", ...sh(orphans)], {
      through: THROUGH,
    });
    expect(await wrapped.exit).toBe(5);
    // They were no reason to wait for the grace.
    expect(wrapped.err.join("\n")).toMatch(/RESIGNED/);
  });
});
