/** A store with many elections: each command looks at all of them at once, and Node has nothing to warn of. */
import { pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import { Cli, conclave, inProcess, scratch } from "../cli/process.js";

const MANY = Array.from({ length: 24 }, (_, i) => `job-${i}`);

/** Node's word for too many listeners; printed once a process, so in a process of its own. */
const LEAK = "MaxListenersExceededWarning";

describe("two dozen elections", { timeout: 60_000 }, () => {
  it("are listed and followed without a warning of Node's", async () => {
    const url = pathToFileURL(scratch()).href;
    for (const name of MANY) await inProcess(["pause", name, "--backend", url]);
    for (const command of ["list", "status"]) {
      const { code, out, err } = await conclave([command, "--backend", url]);
      expect(out.split("\n")).toHaveLength(MANY.length + 1);
      expect([command, code, err]).toEqual([command, 0, ""]);
    }
    const following = new Cli(["observe", "--watch", "--json", "--backend", url]);
    for (const name of MANY) await following.line((line) => line.includes(`"${name}"`));
    const page = new Cli(["serve", "--observe-only", "--listen", "0", "--backend", url]);
    const at = /http:\/\/\S+/.exec(await page.line(/listening on http/))![0];
    for (const name of MANY) expect((await fetch(`${at}/elections/${name}`)).status).not.toBe(404);
    for (const cli of [following, page]) {
      cli.kill("SIGTERM");
      expect((await cli.exit).code).toBe(0);
      expect(cli.err.join("\n")).not.toContain(LEAK);
    }
  });
});
