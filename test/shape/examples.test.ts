/**
 * Every example runs, ends by itself and prints what its page says. In
 * expected.txt a line is literal text; `<…>` (say `<token>` or `<ms>`) stands
 * for any run of characters without a space.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ROOT } from "./sources.js";

const names = readdirSync(join(ROOT, "examples"), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map((entry) => entry.name);

function pattern(line: string): RegExp {
  const literal = line.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
  return new RegExp(`^${literal.replaceAll(/<[^<>]+>/g, String.raw`\S+`)}$`);
}

describe("examples", () => {
  it("are listed in examples/README.md, all of them and no other", () => {
    const page = readFileSync(join(ROOT, "examples/README.md"), "utf8");
    const listed = [...page.matchAll(/^\| \[([^\]]+)\]\(\1\/main\.ts\) \|/gm)].map((match) => match[1] ?? "");
    expect(listed.toSorted()).toEqual(names.toSorted());
  });

  // What needs a store (needs.txt) is run by the tests of that store, which start one.
  const alone = names.filter((name) => !existsSync(join(ROOT, "examples", name, "needs.txt")));

  it.each(alone)(
    "%s prints what it should",
    (name) => {
      const folder = join(ROOT, "examples", name);
      expect(existsSync(join(folder, "main.ts")), `examples/${name}/main.ts`).toBe(true);
      const expected = readFileSync(join(folder, "expected.txt"), "utf8").trimEnd().split("\n");
      const run = spawnSync(process.execPath, [join(ROOT, ".build/examples", name, "main.js")], {
        cwd: ROOT,
        encoding: "utf8",
        timeout: 60_000,
      });
      expect(run.stderr).toBe("");
      expect(run.status).toBe(0);
      const lines = run.stdout.trimEnd().split("\n");
      expect(lines.length, run.stdout).toBe(expected.length);
      for (const [index, line] of lines.entries()) expect(line).toMatch(pattern(expected[index] ?? ""));
    },
    90_000,
  );
});
