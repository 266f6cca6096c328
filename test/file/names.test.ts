import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  encodeKey,
  freshNumber,
  isLeftover,
  parseListing,
  parseNumber,
  stagingName,
} from "../../src/backends/file/names.js";

describe("directories of keys", () => {
  it("are one safe path segment, whatever the name", () => {
    const evil = [
      "../x",
      "/etc/x",
      "a/b",
      ".",
      "..",
      "\0",
      "a\0b",
      "__proto__",
      "con",
      "nul.txt",
      "x.",
      " ",
      "%2e",
      "x".repeat(300),
    ];
    for (const name of evil) {
      const encoded = encodeKey(name);
      expect(encoded).toMatch(/^[nh]-[a-z0-9_.%-]*[a-z0-9_%-]?$/);
      expect(encoded.length).toBeLessThan(200);
      expect(encoded).not.toMatch(/\.$/);
    }
    expect(new Set(evil.map(encodeKey)).size).toBe(evil.length);
  });

  it("differ for names that look alike, also where case and Unicode forms are folded", () => {
    const alike = [
      "job",
      "Job",
      "JOB",
      "jоb" /* Cyrillic o */,
      "job ",
      "job.",
      "jo\u0301b",
      "j\u00f3b",
      "%6a%6f%62",
      "n-job",
    ];
    const folded = alike.map((name) => encodeKey(name).toLowerCase().normalize("NFC"));
    expect(new Set(folded).size).toBe(alike.length);
  });

  it("differ for any two different names", () => {
    const name = fc.string({ unit: "binary", minLength: 1, maxLength: 250 });
    fc.assert(
      fc.property(name, name, (a, b) => {
        fc.pre(a !== b);
        expect(encodeKey(a).toLowerCase()).not.toBe(encodeKey(b).toLowerCase());
      }),
    );
  });

  it("are refused to names that no file system could tell apart", () => {
    expect(() => encodeKey("\ud800")).toThrow(/surrogate/);
    expect(() => encodeKey("")).toThrow(/at least one character/);
  });
});

describe("record numbers", () => {
  it("are canonical decimals and nothing else", () => {
    expect(parseNumber("1763000000000")).toBe(1763000000000n);
    for (const name of [
      "",
      "0",
      "01",
      "-1",
      "+1",
      "1e3",
      "1.0",
      " 1",
      "1\n",
      "٣",
      "0x10",
      "NaN",
      "first",
      "1n",
    ])
      expect(parseNumber(name)).toBeNull();
  });

  it("are refused loudly beyond what any clock could have brought", () => {
    for (const name of ["9999999999999999", "9223372036854775807", "9999999999999999999", "1".repeat(200)])
      expect(() => parseNumber(name)).toThrow(/remove that file/);
  });

  it("start at the wall clock, above all that was seen", () => {
    expect(freshNumber(1763000000000.7, 0n)).toBe(1763000000000700n);
    expect(freshNumber(1000, 1763000000000000n)).toBe(1763000000000001n);
    expect(freshNumber(Number.NaN, 0n)).toBe(1n);
    expect(freshNumber(-5, 0n)).toBe(1n);
    expect(() => freshNumber(1e15, 0n)).toThrow(/wall clock/);
  });

  it("are listed newest first, strangers left out", () => {
    expect(parseListing(["9", "10", "first", "tmp", "008", "2"])).toEqual({
      numbers: [10n, 9n, 2n],
      first: true,
    });
    expect(parseListing([])).toEqual({ numbers: [], first: false });
  });
});

describe("temp files", () => {
  it("are leftovers when they are old, and only if they are ours", () => {
    const name = stagingName(1_000_000, "abc123");
    expect(isLeftover(name, 1_000_500, 1000)).toBe(false);
    expect(isLeftover(name, 1_002_000, 1000)).toBe(true);
    expect(isLeftover(name, 0, 1000)).toBe(true);
    for (const other of ["notes.txt", "123", "-abc", "1-ABC/.."])
      expect(isLeftover(other, 1e12, 1000)).toBe(false);
  });
});
