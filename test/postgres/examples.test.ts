/** The example that needs PostgreSQL prints what its page says. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { describe, expect, it } from "vitest";
import { ROOT } from "../shape/sources.js";
import { hasPostgres, PostgresServer } from "../support/postgres-server.js";
import { until } from "../support/until.js";

describe.skipIf(!hasPostgres())("postgres example", () => {
  it("leads, writes, refuses the past and resigns", async () => {
    const server = await PostgresServer.start();
    try {
      const expected = readFileSync(join(ROOT, "examples/postgres/expected.txt"), "utf8")
        .trimEnd()
        .split("\n");
      const child = spawn(process.execPath, [join(ROOT, ".build/examples/postgres/main.js")], {
        cwd: ROOT,
        env: { PATH: process.env["PATH"], DATABASE_URL: server.url() },
        stdio: ["ignore", "pipe", "pipe"],
      });
      const lines: string[] = [];
      let errors = "";
      createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
      child.stderr.on("data", (chunk: Buffer) => (errors += String(chunk)));
      const exited = once(child, "exit");
      await until(() => lines.length === expected.length - 1 || child.exitCode !== null);
      child.kill("SIGTERM");
      expect(await exited).toEqual([0, null]);
      expect(errors).toBe("");
      expect(lines.map((line) => line.replace(/token \d+$/, "token <token>"))).toEqual(expected);
    } finally {
      await server.stop();
    }
  });
});
