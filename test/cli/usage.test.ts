/** Bad usage: exit 2, one clear line, nothing done. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { conclave, inProcess, scratch } from "./process.js";

const DURATION_FLAGS = [
  "--ttl",
  "--lease-duration",
  "--retry",
  "--renew-deadline",
  "--work-every",
  "--max-term",
];
const EVIL_DURATIONS = ["0", "-1", "NaN", "10", "2147483648", "1e12"];

async function refused(args: readonly string[], says: RegExp, call = inProcess): Promise<void> {
  const { code, out, err } = await call(args);
  expect(err, args.join(" ")).toMatch(says);
  expect(err.split("\n")).toHaveLength(1);
  expect(err).toMatch(/^conclave: /);
  expect(out).toBe("");
  expect(code).toBe(2);
}

describe("bad usage", () => {
  it.each(EVIL_DURATIONS)("refuses the duration %s and says what to write", async (duration) => {
    await refused(["run", "x", "--ttl", duration], /write for example 500ms, 10s or 1m/, conclave);
  });

  it.each(DURATION_FLAGS)("refuses a duration without unit for %s", async (flag) => {
    await refused(["run", "x", `${flag}=10`], /It has no unit/);
  });

  it("refuses timings that cannot work, with the arithmetic", async () => {
    const lockDir = ["--lock-dir", scratch()];
    await refused(
      ["run", "x", "--ttl", "10s", "--renew-deadline", "9.9s", ...lockDir],
      /--renew-deadline \(9900\).*95 %/,
    );
    await refused(["run", "x", "--ttl", "50ms", ...lockDir], /--ttl is 50/);
  });

  it("suggests the flag or the command that was meant", async () => {
    await refused(["run", "x", "--tll", "10s"], /unknown option '--tll' \(Did you mean --ttl\?\)/);
    await refused(["run", "x", "--lease-durtion=10s"], /Did you mean --lease-duration/);
    await refused(["leader", "x", "--jsno"], /Did you mean --json/);
    await refused(["observ", "x"], /unknown command 'observ' \(Did you mean observe\?\)/);
    await refused(["qqqqqqqq", "x"], /unknown command 'qqqqqqqq' \(`conclave --help` lists them\)/);
    await refused(["run", "x", "--qqqqqq"], /`conclave run --help` lists them/);
  });

  it("refuses what is missing, too much or contradictory", async () => {
    await refused(["leader"], /missing required argument 'NAME'/);
    await refused(["run", "a", "b"], /too many arguments/);
    await refused(["run", "a", "--lock-name", "b"], /NAME, --lock-name and/);
    await refused(["run", "a", "--id"], /argument missing/);
    await refused(["run", "a", "--log", "xml"], /Allowed choices are text, json/);
    await refused(["run", "a", "--lock-dir", "/x", "--backend", "memory:"], /give one/);
    await refused(["run", "a", "--lock-dir", ""], /must name a directory/);
    await refused(["demo", "--nodes", "0"], /whole number from 1 to 20/);
    await refused(["demo", "--listen", "x:y"], /127\.0\.0\.1:4040/);
    await refused(["demo-node", "x"], /not specified|started by/);
  });

  it("refuses names that nobody can mean, and does nothing outside the directory for those that are odd", async () => {
    const parent = scratch();
    const lockDir = ["--lock-dir", join(parent, "inner")];
    await refused(["leader", "", ...lockDir], /name must not be empty/);
    await refused(["leader", "x".repeat(300), ...lockDir], /300 characters long; at most 200/);
    await refused(["leader", "a\nb", ...lockDir], /control character/);
    await refused(["run", "x", "--id", "a\u001bb", ...lockDir], /id .*control character/);
    await refused(["run", "x", "--id", "i".repeat(101), ...lockDir], /at most 100/);
    const odd = [
      "../x",
      "../../x",
      "__proto__",
      "constructor",
      ".",
      "..",
      "/etc/x",
      "a",
      "A",
      "é",
      "e\u0301",
      "CON",
    ];
    for (const name of odd) {
      const { code, out } = await inProcess([
        "run",
        name,
        "--try",
        "--max-term",
        "100ms",
        "--log",
        "json",
        ...lockDir,
      ]);
      expect(code, name).toBe(0);
      // Look-alikes are elections of their own: each of them is won from scratch.
      expect(out, name).toContain('"event":"elected"');
    }
    expect(readdirSync(parent)).toEqual(["inner"]);
    expect(readdirSync(join(parent, "inner", "elections")).length).toBe(odd.length);
  });

  it("never shows the secrets of a backend URL", async () => {
    const url = "nowhere://app:hunter22@host/x?password=hunter33";
    const runs = [
      await conclave(["run", "x", "--backend", url]),
      await conclave(["run", "x"], { CONCLAVE_BACKEND: url }),
      await conclave(["run", "x", `--bakkend=${url}`]),
      await conclave(["run", "x", "y", url]),
      await conclave(["run", "x", "--backend", "nowhere//app:hunter22@host"]),
      await conclave(["run", "x", "--ttl", url]),
      await conclave([url]),
    ];
    for (const { code, out, err } of runs) {
      expect(code).toBe(2);
      expect(out + err).not.toMatch(/hunter/);
      expect(err).toMatch(/^conclave: /);
    }
  });

  it("refuses a directory that is none, and a relative file URL", async () => {
    await refused(["run", "x", "--lock-dir", process.execPath], /not a directory/);
    await refused(["run", "x", "--backend", "file:foo"], /write file:\/\/\/directory/);
    await refused(["run", "x", "--backend", "file://host/dir"], /three slashes/);
    await refused(["run", "x", "--backend", "file:///x?y=1"], /unknown parameter "y"/);
  });
});

describe("help", () => {
  it.each([["run"], ["leader"], ["observe"], ["serve"], ["demo"]])(
    "of %s has examples and exit codes",
    async (command) => {
      const { code, out } = await inProcess([command, "--help"]);
      expect(code).toBe(0);
      expect(out).toMatch(new RegExp(`Examples:\\n(?:  \\$ export .*\\n)?  \\$ conclave ${command}`));
      expect(out).toMatch(/Exit codes: 0/);
      expect((await inProcess(["help", command])).out).toBe(out);
    },
  );

  it("lists the commands, and is what one gets without any", async () => {
    const { code, out } = await inProcess(["--help"]);
    expect(code).toBe(0);
    for (const command of ["run", "leader", "observe", "serve", "demo"])
      expect(out).toMatch(new RegExp(`^  ${command} `, "m"));
    expect(out).not.toContain("demo-node");
    const bare = await inProcess([]);
    expect(bare.code).toBe(2);
    expect(bare.err).toContain("Usage: conclave");
  });

  it("tells the version", async () => {
    expect(await conclave(["--version"])).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^\d+\.\d+\.\d+/),
    });
  });
});
