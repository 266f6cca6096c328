/** The examples of the README, pasted into files and started: they do what it says, stop when told, and leave nothing. */
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

const STORE = '"postgres://app@db/orders"';

/** The example with this import, compiled, and standing in a directory of the test instead of a database. */
function pasted(marker: string, changes: readonly (readonly [string, string])[]): string {
  const readme = readFileSync(join(ROOT, "README.md"), "utf8");
  const blocks = [...readme.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map((match) => match[1]!);
  let code = blocks.find((block) => block.includes(marker)) ?? "";
  for (const [from, to] of [...changes, [STORE, JSON.stringify(pathToFileURL(leadership).href)] as const]) {
    expect(code).toContain(from);
    code = code.replace(from, to);
  }
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

it("the README's schedule runs its job once for each scheduled time on two replicas, and stops", async () => {
  const main = pasted("conclave/cron", [["0 3 * * *", "* * * * * *"]]);
  const said: string[] = [];
  const replicas = [0, 1].map(() =>
    spawn(process.execPath, [main], {
      stdio: ["ignore", "pipe", "inherit"],
      timeout: LIMIT_MS,
      killSignal: "SIGKILL",
    }),
  );
  const billed = (): string[] => said.flatMap((line) => /^billing for (\S+)/.exec(line)?.[1] ?? []);
  try {
    await new Promise<void>((resolve, reject) => {
      for (const { stdout } of replicas)
        createInterface({ input: stdout }).on("line", (line) => {
          said.push(line);
          if (billed().length >= 3) resolve();
        });
      for (const replica of replicas) replica.once("close", () => reject(new Error(said.join("\n"))));
    });
    const closed = replicas.map((replica) => once(replica, "close"));
    for (const replica of replicas) replica.kill("SIGTERM");
    expect(await Promise.all(closed)).toEqual([
      [0, null],
      [0, null],
    ]);
    expect(new Set(billed()).size).toBe(billed().length);
  } finally {
    for (const replica of replicas) replica.kill("SIGKILL");
  }
});

it("the README's loop leads, and ends at once when it is told to", async () => {
  const child = spawn(
    process.execPath,
    [pasted("openElection", [['name: "mailer"', `ttlMs: ${TTL_MS}, name: "mailer"`]])],
    {
      stdio: ["ignore", "pipe", "inherit"],
      timeout: LIMIT_MS,
      killSignal: "SIGKILL",
    },
  );
  try {
    const said: string[] = [];
    const lines = createInterface({ input: child.stdout });
    lines.on("line", (line) => said.push(line));
    await once(lines, "line");
    while (said.length < 2) await once(lines, "line");
    expect(said[0]).toMatch(/^election "mailer": campaigning on file, \/.*/);
    expect(said[1]).toMatch(/^election "mailer": .* leads with token \d+/);
    child.kill("SIGTERM");
    expect(await once(child, "close")).toEqual([0, null]);
    expect(said.at(-1)).toMatch(/resigned: the candidate was stopped/);
    await using look = await openElection({ name: "mailer", backend: pathToFileURL(leadership).href });
    expect(await look.leader()).toBeNull();
  } finally {
    child.kill("SIGKILL");
  }
});
