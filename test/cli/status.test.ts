import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Cli, conclave, scratch } from "./process.js";

describe("conclave status", () => {
  it("lists every election of a store and who leads it, once", async () => {
    const directory = scratch();
    const at = ["--lock-dir", directory];
    expect(await conclave(["status", ...at])).toMatchObject({
      code: 0,
      out: `there is no election in ${directory}`,
    });
    const first = new Cli(["run", "jobs", "--id", "a", "--log", "json", ...at]);
    const second = new Cli(["run", "Ma/il er", "--id", "b", "--log", "json", ...at]);
    const [led] = await Promise.all([first.event("elected"), second.event("elected")]);
    second.kill("SIGTERM");
    await second.exit;
    mkdirSync(join(directory, "elections", "not-ours"));
    const { code, out } = await conclave(["status", ...at]);
    expect(code).toBe(0);
    const lines = out.split("\n");
    expect(lines).toHaveLength(3);
    expect(lines[0]).toMatch(/^ELECTION +LEADER +TOKEN +SINCE$/);
    expect(lines[1]).toMatch(/^Ma\/il er +nobody$/);
    expect(lines[2]).toMatch(new RegExp(`^jobs +${led.candidate as string} +${led.token as string} `));
    const json = await conclave(["status", "jobs", "--json", ...at]);
    expect(JSON.parse(json.out)).toMatchObject({ event: "leader", election: "jobs", token: led.token });
  });

  it("exits 3 if one of them cannot be asked, and shows the others", async () => {
    const directory = scratch();
    const at = ["--lock-dir", directory];
    mkdirSync(join(directory, "elections"));
    writeFileSync(join(directory, "elections", "n-x"), ""); // where records should be, there is a file
    const { code, out } = await conclave(["status", "x", "y", ...at]);
    expect(code).toBe(3);
    expect(out).toMatch(/^x +\?$/m);
    expect(out).toMatch(/^y +nobody$/m);
    expect(out).toMatch(/^x: /m);
  });

  it("refuses names that are given twice or cannot be names", async () => {
    expect(await conclave(["status", "x", "x"])).toMatchObject({ code: 2 });
    expect(await conclave(["status", ""])).toMatchObject({ code: 2 });
  });
});
