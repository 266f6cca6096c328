/** The first example of the README, pasted into a file and started: it leads, stops when told, and leaves nothing. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, expect, it } from "vitest";
import { openElection } from "../../src/index.js";
import { ROOT } from "../shape/sources.js";

/** In here, so that "conclave" is this package. */
const FOLDER = join(ROOT, "artifacts/readme");
/** So long that work which does not give way would lose its leadership only after the test. */
const TTL_MS = 120_000;
/** Before the test's own: work that never gives way hears no SIGTERM, and would outlive it. */
const LIMIT_MS = 20_000;
let leadership = "";

beforeEach(() => {
  leadership = mkdtempSync(join(tmpdir(), "conclave-readme-"));
});

afterEach(() => {
  rmSync(leadership, { recursive: true, force: true });
});

/** Compiled, and standing in a directory of the test instead of the user's own. */
function pasted(): string {
  const [, example = ""] =
    /^```ts\n([\s\S]*?)^```$/m.exec(readFileSync(join(ROOT, "README.md"), "utf8")) ?? [];
  const options = `{ backend: ${JSON.stringify(pathToFileURL(leadership).href)}, ttlMs: ${TTL_MS}, name: "nightly-bill"`;
  const code = example.replace('{ name: "nightly-bill"', options);
  expect(code).toContain(options);
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(join(FOLDER, "example.ts"), code);
  const compilerOptions = { rootDir: ".", outDir: "out", noUnusedLocals: false, noUnusedParameters: false };
  writeFileSync(
    join(FOLDER, "tsconfig.json"),
    JSON.stringify({ extends: "../../tsconfig.json", compilerOptions, files: ["example.ts"], include: [] }),
  );
  execFileSync(process.execPath, [join(ROOT, "node_modules/typescript/bin/tsc"), "-p", FOLDER]);
  return join(FOLDER, "out/example.js");
}

it("the first example of the README leads, and ends at once when it is told to", async () => {
  const child = spawn(process.execPath, [pasted()], {
    stdio: ["ignore", "pipe", "inherit"],
    timeout: LIMIT_MS,
    killSignal: "SIGKILL",
  });
  try {
    const said: string[] = [];
    const lines = createInterface({ input: child.stdout });
    lines.on("line", (line) => said.push(line));
    await once(lines, "line");
    expect(said[0]).toMatch(/^election "nightly-bill": .* leads with token \d+$/);
    child.kill("SIGTERM");
    expect(await once(child, "close")).toEqual([0, null]);
    expect(said.at(-1)).toMatch(/resigned: the candidate was stopped$/);
    await using look = await openElection({ name: "nightly-bill", backend: pathToFileURL(leadership).href });
    expect(await look.leader()).toBeNull();
  } finally {
    child.kill("SIGKILL");
  }
});
