/**
 * Before any test: dist/ and .build/ are what the sources say. Tests that start
 * real processes run compiled code, and a stale build would prove nothing.
 */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";

export default function setup(): void {
  execFileSync("make", ["--no-print-directory", "--silent", "build", "tools"], {
    cwd: fileURLToPath(new URL("..", import.meta.url)),
    stdio: ["ignore", "ignore", "inherit"],
    env: { ...process.env, MAKEFLAGS: "", MAKELEVEL: "" },
  });
}
