/** Must show 8: a program that closes its election ends by itself; a hundred elections leave nothing. */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const LIMIT_MS = 120_000;
let directory = "";

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "conclave-lifecycle-"));
});

afterEach(() => {
  rmSync(directory, { recursive: true, force: true });
});

/** Runs a compiled program of this folder to its own end. */
async function program(name: "exits" | "cycles", url: string): Promise<unknown> {
  const path = fileURLToPath(new URL(`../../.build/test/lifecycle/programs/${name}.js`, import.meta.url));
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ["--trace-warnings", path, url], {
    timeout: LIMIT_MS,
  });
  expect(stderr).toBe("");
  return JSON.parse(stdout);
}

describe.each([
  ["memory", () => "memory:"],
  ["file", () => pathToFileURL(directory).href],
])("elections on %s", (_, url) => {
  it("let the program end by itself once they are closed", { timeout: LIMIT_MS }, async () => {
    expect(await program("exits", url())).toEqual({ led: true, reason: "closed" });
  });

  it("leave no handle, listener or descriptor after 100 of them", { timeout: LIMIT_MS }, async () => {
    const { before, after } = (await program("cycles", url())) as { before: unknown; after: unknown };
    expect(after).toEqual(before);
  });
});
