/** The examples that need etcd print what their pages say. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { EtcdServer, hasEtcd } from "../support/etcd-server.js";
import { until } from "../support/until.js";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

describe.skipIf(!hasEtcd())("etcd examples", () => {
  let server: EtcdServer;
  beforeAll(async () => {
    server = await EtcdServer.start();
  });
  afterAll(() => server.stop());

  it.each(["etcd", "etcd-manual"])("%s", async (name) => {
    const expected = readFileSync(join(ROOT, "examples", name, "expected.txt"), "utf8")
      .trimEnd()
      .split("\n");
    const child = spawn(process.execPath, [join(ROOT, ".build/examples", name, "main.js")], {
      cwd: ROOT,
      env: { PATH: process.env["PATH"], ETCD_ENDPOINTS: server.endpoints.join(",") },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const lines: string[] = [];
    let errors = "";
    createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
    child.stderr.on("data", (chunk: Buffer) => (errors += String(chunk)));
    const exited = once(child, "exit");
    if (name === "etcd") {
      await until(() => lines.length === 2);
      child.kill("SIGTERM");
    }
    expect(await exited).toEqual([0, null]);
    expect(errors).toBe("");
    expect(lines).toHaveLength(expected.length);
    lines.forEach((line, i) => expect(line.replace(/token \d+$/, "token <token>")).toBe(expected[i]));
  });
});
