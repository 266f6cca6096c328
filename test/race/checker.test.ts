/** The judge of the fault runs is itself judged: it must find every bad history, and nothing in a legal one. */
import { describe, expect, it } from "vitest";
import { checkHistory } from "../../src/testing/race/checker.js";
import { parseFile, parseLine } from "../../src/testing/race/history.js";
import { selftest } from "../support/selftest.js";
import { sources, importsOf } from "../shape/sources.js";

describe("history checker", () => {
  it("finds at least 15 kinds of bad histories, and none in at least 1,000 legal ones", () => {
    const { code, text } = selftest(checkHistory);
    const [bad, legal] =
      /(\d+) bad histories, (\d+) legal ones .*: 0 mistakes$/.exec(text)?.slice(1).map(Number) ?? [];
    expect(code, text).toBe(0);
    expect(bad).toBeGreaterThanOrEqual(15);
    expect(legal).toBeGreaterThanOrEqual(1000);
  });

  it("does not take a run that tested nothing for a good one", () => {
    const span = parseLine('{"ev":"span","el":"e","inc":"a","token":"1","from":"0","to":"1000000","n":99}');
    const demands = { observations: 50, changes: 1, faults: { stop: 1 } };
    const { violations, inconclusive } = checkHistory([span], demands);
    // One term that nobody began: that, too, is seen.
    expect(violations.map(({ rule }) => rule)).toEqual(["EVENT_ORDER"]);
    expect(inconclusive).toHaveLength(2);
  });

  it("accepts a torn line only at the end of a file", () => {
    const whole = '{"ev":"bye","el":"e","inc":"a","t":"1"}\n';
    expect(parseFile(`${whole}{"ev":"by`)).toHaveLength(1);
    expect(() => parseFile(`{"ev":"by\n${whole}`)).toThrow(SyntaxError);
    expect(() => parseFile('{"ev":"bye"}\n')).toThrow("bye without el");
  });

  it("knows nothing of the library", () => {
    const own = sources("src/testing/race").filter(({ path }) => /(checker|rules|history)\.ts$/.test(path));
    expect(own).toHaveLength(3);
    for (const source of own)
      expect(
        importsOf(source).filter((name) => !/^(node:|\.\/(checker|rules|history)\.js$)/.test(name)),
      ).toEqual([]);
  });
});
