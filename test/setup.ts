/**
 * Before any test: dist/ and .build/ are what the sources say. Tests that start
 * real processes run compiled code, and a stale build would prove nothing. And
 * wills of killed processes go to a directory of this run.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export default function setup(): () => void {
  execFileSync("make", ["--no-print-directory", "--silent", "build", "tools"], {
    cwd: fileURLToPath(new URL("..", import.meta.url)),
    stdio: ["ignore", "ignore", "inherit"],
    env: { ...process.env, MAKEFLAGS: "", MAKELEVEL: "" },
  });
  // Whatever a killed process leaves as its will is nobody else's business, and goes with the tests.
  const runtime = mkdtempSync(join(tmpdir(), "conclave-runtime-"));
  process.env["XDG_RUNTIME_DIR"] = runtime;
  return () => rmSync(runtime, { recursive: true, force: true, maxRetries: 10 });
}
