/** The table in docs/guide/exec.md and the tests say the same: each row is a test, each such test a row. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { files, ROOT } from "../shape/sources.js";

const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");

describe("the table of exec's behaviour", () => {
  it("has a test for every row, and a row for every test", () => {
    const rows = [...read("docs/guide/exec.md").matchAll(/^\| ([A-Z]\d+) \|/gm)].map((match) => match[1]!);
    const tests = files("test/exec", ".test.ts").flatMap((path) =>
      [...read(path).matchAll(/\(\s*"([A-Z]\d+) /g)].map((match) => match[1]!),
    );
    expect(rows.length).toBeGreaterThan(30);
    expect([...new Set(tests)].toSorted()).toEqual(rows.toSorted());
  });
});
