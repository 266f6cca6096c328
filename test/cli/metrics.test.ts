/** `--metrics` of commands that campaign. */
import { describe, expect, it } from "vitest";
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
});
