/** What the README tells a new user to type in two terminals, typed in two terminals. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { inProcess } from "../cli/process.js";
import { ROOT } from "../shape/sources.js";
import { scratch, Wrapped } from "./wrapped.js";

const hasScript = spawnSync("script", ["--version"]).status === 0;

/** The words after `npx conclave exec`, as a shell reads them. */
function words(): string[] {
  const readme = readFileSync(join(ROOT, "README.md"), "utf8");
  const [, line] = /^npx conclave exec (ticker .*)$/m.exec(readme)!;
  const { stdout } = spawnSync("sh", ["-c", `printf '%s\\0' ${line}`], { encoding: "utf8" });
  return stdout.split("\0").slice(0, -1);
}

describe("a new user", () => {
  it.skipIf(!hasScript)(
    "sees in two terminals that only one runs, and the other as soon as the first is stopped",
    async () => {
      const [name, ...rest] = words();
      // A directory of the test instead of the user's own.
      expect(rest.slice(0, 2)).toEqual(["--backend", "file:"]);
      const args = [name!, "--lock-dir", scratch(), ...rest.slice(2)];
      const first = new Wrapped(args, { terminal: true });
      const token = (await first.line(/^tick under token \d+/)).trim();
      const second = new Wrapped(args, { terminal: true });
      await second.line(/NEW LEADER/);
      await first.line(/^tick/, { nth: 4 });
      expect(second.out.some((line) => line.startsWith("tick"))).toBe(false);
      first.child.stdin!.write("\u0003");
      await second.line(/^tick under token \d+/);
      expect(await first.exit).toBe(130);
      const next = second.out.find((line) => line.startsWith("tick"))!.trim();
      const number = (text: string): bigint => BigInt(/\d+/.exec(text)![0]);
      expect(number(next)).toBeGreaterThan(number(token));
    },
  );

  it("finds exec in the help, with examples and exit codes", async () => {
    expect((await inProcess(["--help"])).out).toMatch(/^  exec /m);
    const { code, out } = await inProcess(["exec", "--help"]);
    expect(code).toBe(0);
    expect(out).toMatch(/Examples:\n {2}\$ export CONCLAVE_BACKEND=.*\n {2}\$ conclave exec/);
    expect(out).toMatch(/Exit codes: /);
  });
});
