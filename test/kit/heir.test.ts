import { expect, test } from "vitest";
import { heirFrom, isHeir, LONGEST_HEIR_MS } from "../../src/kit/heir.js";

test.each([
  ["web-1-5f0c7a1b29d4e8aa", "web-1-5f0c7a1b29d4e8aa", true],
  ["web-1-5f0c7a1b29d4e8aa", "web-1", true],
  ["web-1-5f0c7a1b29d4e8aa", "web", false],
  ["web-10-5f0c7a1b29d4e8aa", "web-1", false],
  ["web-1-5f0c7a1b29d4e8aa", "web-1-", false],
  ["web-1-5f0c7a1b29d4e8aa", "", false],
  ["-5f0c7a1b29d4e8aa", "", false],
  ["plain", "plain", true],
])("candidate %s, heir %j: %s", (candidate, heir, mine) => {
  expect(isHeir(candidate, heir)).toBe(mine);
});

test("what a store says of an heir is believed within bounds", () => {
  expect(heirFrom("web-2", 4000)).toEqual({ candidate: "web-2", forMs: 4000 });
  expect(heirFrom("web-2", 1e12)).toEqual({ candidate: "web-2", forMs: LONGEST_HEIR_MS });
  expect(heirFrom("w".repeat(200), 1)).toBeDefined();
});

test.each([
  [undefined, 4000],
  [null, 4000],
  [7, 4000],
  ["", 4000],
  ["a\nb", 4000],
  ["\ud800", 4000],
  ["w".repeat(201), 4000],
  ["web-2", undefined],
  ["web-2", "4000"],
  ["web-2", Number.NaN],
  ["web-2", Infinity],
  ["web-2", 0],
  ["web-2", -1],
])("an heir %j for %j ms is no heir", (candidate, forMs) => {
  expect(heirFrom(candidate, forMs)).toBeUndefined();
});
