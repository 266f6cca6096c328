/** The example that needs ZooKeeper prints what its page says. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ROOT } from "../shape/sources.js";
import { until } from "../support/until.js";
import { hasZooKeeper, ZooKeeperServer } from "../support/zookeeper-server.js";

describe.skipIf(!hasZooKeeper())("ZooKeeper example", () => {
  let server: ZooKeeperServer;
  beforeAll(async () => {
    server = await ZooKeeperServer.start();
  }, 60_000);
  afterAll(() => server?.stop());

  it("zookeeper", async () => {
    const folder = join(ROOT, "examples/zookeeper");
    const expected = readFileSync(join(folder, "expected.txt"), "utf8").trimEnd().split("\n");
    const child = spawn(process.execPath, [join(ROOT, ".build/examples/zookeeper/main.js")], {
      env: { PATH: process.env["PATH"], ZOOKEEPER_HOSTS: server.hosts.join(",") },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const lines: string[] = [];
    let errors = "";
    createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
    child.stderr.on("data", (chunk: Buffer) => (errors += String(chunk)));
    const exited = once(child, "exit");
    await until(() => lines.length === 2, 20_000);
    child.kill("SIGTERM");
    expect(await exited).toEqual([0, null]);
    expect(errors).toBe("");
    expect(lines.map((line) => line.replace(/token \d+$/, "token <token>"))).toEqual(expected);
  });
});
