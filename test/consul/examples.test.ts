/** The example that needs Consul prints what its page says. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ROOT } from "../shape/sources.js";
import { ConsulServer, hasConsul } from "../support/consul-server.js";
import { until } from "../support/until.js";

describe.skipIf(!hasConsul())("the example on Consul", () => {
  let server: ConsulServer;
  beforeAll(async () => {
    server = await ConsulServer.start();
  });
  afterAll(() => server.stop());

  it("leads, and resigns when it is told to", async () => {
    const expected = readFileSync(join(ROOT, "examples/consul/expected.txt"), "utf8").trimEnd().split("\n");
    const child = spawn(process.execPath, [join(ROOT, ".build/examples/consul/main.js")], {
      cwd: ROOT,
      env: { PATH: process.env["PATH"], CONSUL_HTTP_ADDR: server.address },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const lines: string[] = [];
    createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
    const exited = once(child, "exit");
    await until(() => lines.length === 2);
    child.kill("SIGTERM");
    expect(await exited).toEqual([0, null]);
    expect(lines.map((line) => line.replace(/\d+/, "<token>"))).toEqual(expected);
  });
});
