/** `--metrics` of commands that campaign. */
import { cpSync, mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ROOT } from "../shape/sources.js";
import { Cli, conclave, scratch } from "./process.js";
import { until } from "../support/until.js";

const WAIT = ["--", "sleep", "60"];
const COMMANDS: readonly (readonly [name: string, args: readonly string[]])[] = [
  ["run", ["run", "jobs"]],
  ["exec", ["exec", "jobs", ...WAIT]],
  ["lock", ["lock", "jobs", ...WAIT]],
  ["cron", ["cron", "0 0 1 1 *", "jobs", ...WAIT]],
];

describe("--metrics", () => {
  it.each(COMMANDS)("conclave %s answers Prometheus on loopback", { timeout: 60_000 }, async (_, args) => {
    const [command, ...words] = args;
    const cli = new Cli([command!, "--metrics", "0", "--lock-dir", scratch(), ...words]);
    const said = (): string | undefined =>
      /metrics: (http:\/\/127\.0\.0\.1:\d+\/metrics)/.exec([...cli.out, ...cli.err].join("\n"))?.[1];
    await until(() => said() !== undefined, 30_000);
    const url = said()!;
    let text = "";
    await until(async () => (text = await (await fetch(url)).text()).includes("conclave_leading{"), 20_000);
    expect(text).toMatch(/^conclave_leading\{[^}]*election="jobs"[^}]*\} [01]$/m);
    if (command === "cron") expect(text).toMatch(/^conclave_cron_/m);
    expect((await fetch(url.replace("/metrics", "/healthz"))).status).toBe(200);
    expect((await fetch(url.replace("/metrics", "/other"))).status).toBe(404);
    cli.kill("SIGTERM");
    await cli.exit;
    await expect(fetch(url)).rejects.toThrow("fetch failed");
  });

  it("refuses what is no address", async () => {
    expect(await conclave(["run", "jobs", "--metrics", "everywhere"])).toMatchObject({ code: 2 });
  });

  describe("where prom-client is not installed", () => {
    /** The command line as it is installed without its optional parts. */
    function bare(): string {
      const folder = scratch();
      cpSync(join(ROOT, "dist"), join(folder, "dist"), { recursive: true });
      cpSync(join(ROOT, "package.json"), join(folder, "package.json"));
      mkdirSync(join(folder, "node_modules"));
      symlinkSync(join(ROOT, "node_modules/commander"), join(folder, "node_modules/commander"));
      return join(folder, "dist/cli/main.js");
    }

    it.each(COMMANDS.filter(([name]) => name !== "cron"))(
      "conclave %s says what to install, and exits 2",
      async (_, args) => {
        const [command, name] = args;
        const words = command === "run" ? [] : ["--", "sh", "-c", "echo works"];
        const cli = new Cli(
          [command!, name!, "--metrics", "0", "--lock-dir", scratch(), ...words],
          {},
          bare(),
        );
        expect((await cli.exit).code).toBe(2);
        const said = [...cli.out, ...cli.err].join("\n");
        expect(said).toContain(
          "--metrics needs prom-client, which is not installed: npm install prom-client",
        );
        expect(said).not.toMatch(/ELECTED|^works/m);
      },
    );

    it("conclave serve goes on without them, and says so", async () => {
      const cli = new Cli(["serve", "jobs", "--listen", "0", "--lock-dir", scratch()], {}, bare());
      await cli.line(/metrics are off: prom-client is not installed \(npm install prom-client\)/);
      const at = /http:\/\/\S+/.exec(await cli.line(/listening on http/))![0];
      expect((await fetch(`${at}/metrics`)).status).toBe(404);
      cli.kill("SIGTERM");
      expect((await cli.exit).code).toBe(0);
    });
  });
});
