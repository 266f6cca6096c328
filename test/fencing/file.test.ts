/** What only a file can do wrong. */
import { mkdir, mkdtemp, readdir, rm, stat, unlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FencedFile } from "../../src/fencing/index.js";

let parent = "";
beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), "conclave-fenced-file-"));
});
afterEach(async () => {
  await rm(parent, { recursive: true, force: true });
});

test("a parent that is missing is not made up: a volume that is not mounted must not look like an empty file", async () => {
  const volume = join(parent, "volume");
  const file = new FencedFile({ path: join(volume, "journal") });
  await expect(file.append(7n, "x")).rejects.toThrow(/ENOENT/);
  await expect(stat(volume)).rejects.toThrow(/ENOENT/);
  await mkdir(volume); // mounted at last: the same object goes on
  await file.append(7n, "x");
  expect((await file.read())?.data.toString()).toBe("x");
});

test("a segment that is missing is an error, not an endless search for it", async () => {
  const path = join(parent, "journal");
  const file = new FencedFile({ path });
  for (const text of ["a", "b", "c"]) await file.append(7n, text);
  await unlink(join(path, "2".padStart(16, "0")));
  await expect(file.read()).rejects.toMatchObject({ code: "conflict" });
  await file.replace(7n, "whole again");
  expect((await file.read())?.data.toString()).toBe("whole again");
});

test("a segment that is torn or foreign stops everything, and is left alone", async () => {
  const path = join(parent, "journal");
  const file = new FencedFile({ path });
  await file.append(7n, "a");
  const header = { v: 1, token: "9", id: "x", parent: null, base: 1 };
  const hostile = [
    "",
    "{",
    JSON.stringify(header), // no end of line
    `${JSON.stringify({ ...header, token: -1 })}\n`,
    `${JSON.stringify({ ...header, token: "1e3" })}\n`,
    `${JSON.stringify({ ...header, base: 5 })}\n`, // begins after itself
  ];
  for (const text of hostile) {
    await writeFile(join(path, "2".padStart(16, "0")), text);
    await expect(file.append(10n, "b")).rejects.toMatchObject({ code: "conflict" });
    await expect(file.read()).rejects.toMatchObject({ code: "conflict" });
  }
  expect((await readdir(path)).sort()).toEqual(["1".padStart(16, "0"), "2".padStart(16, "0"), "staging"]);
});
