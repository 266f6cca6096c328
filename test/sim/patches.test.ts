/**
 * Every mutant still fits the code: the text that it replaces is there, once,
 * and what comes of it can be loaded (a module that cannot would count as caught).
 * `make test` runs only a few mutants and `make test-race` all of them; without
 * this test a change of the code could disable a mutant unnoticed until then.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseSync } from "oxc-parser";
import { describe, expect, test } from "vitest";
import { ROOT } from "../shape/sources.js";
import { ALL_MUTANTS } from "./all-mutants.js";
import { patch } from "./mutant-run.js";

/** What would keep the module from being loaded: syntax, and private names that are not there. */
function errorsIn(file: string, text: string): string[] {
  const { errors } = parseSync(file, text, { sourceType: "module", showSemanticErrors: true });
  return errors.map(({ message }) => message);
}

describe("mutants of the simulator", () => {
  test.each(ALL_MUTANTS)("$name: its patch applies", ({ edits }) => {
    expect(edits.length).toBeGreaterThan(0);
    const texts = new Map<string, string>();
    for (const edit of edits) {
      const before = texts.get(edit.file) ?? readFileSync(join(ROOT, ".build", edit.file), "utf8");
      const after = patch(before, edit);
      expect(after, "the patch changes something").not.toBe(before);
      texts.set(edit.file, after);
    }
    for (const [file, text] of texts) expect(errorsIn(file, text), text).toEqual([]);
  });

  test("have names of their own", () => {
    const names = ALL_MUTANTS.map(({ name }) => name);
    expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
  });

  test("code that cannot be loaded is refused", () => {
    expect(errorsIn("x.js", "function f() { return this.#clock; }")).not.toEqual([]);
    expect(errorsIn("x.js", "class A { #clock = 1; f() { return this.#clock; } }")).toEqual([]);
  });

  test("a text that is missing or ambiguous is refused", () => {
    const edit = { file: "x.js", find: "a", replace: "b" };
    expect(patch("1 a 2", edit)).toBe("1 b 2");
    expect(() => patch("1 2", edit)).toThrow("occurs 0 times in x.js");
    expect(() => patch("a a", edit)).toThrow("occurs 2 times in x.js");
  });
});
