/** The example that needs Redis prints what its page says. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, it, onTestFinished } from "vitest";
import { ROOT } from "../shape/sources.js";
import { hasRedis, RedisServer } from "../support/redis-server.js";
import { until } from "../support/until.js";

it.skipIf(!hasRedis())(
  "examples/redis",
  async () => {
    const server = await RedisServer.start();
    onTestFinished(() => server.stop());
    const expected = readFileSync(join(ROOT, "examples/redis/expected.txt"), "utf8").trimEnd().split("\n");
    const child = spawn(process.execPath, [join(ROOT, ".build/examples/redis/main.js")], {
      cwd: ROOT,
      env: { PATH: process.env["PATH"], REDIS_URL: server.url, QUIET: "1" },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const lines: string[] = [];
    let errors = "";
    createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
    child.stderr.on("data", (chunk: Buffer) => (errors += String(chunk)));
    const exited = once(child, "exit");
    await until(
      async () => lines.length === 2 && Number(await server.cli("GET", "count:{reports}")) > 1,
      30_000,
    );
    child.kill("SIGTERM");
    expect(await exited).toEqual([0, null]);
    expect(errors).toBe("");
    expect(lines.map((line) => line.replace(/token \d+$/, "token <token>"))).toEqual(expected);
  },
  60_000,
);
