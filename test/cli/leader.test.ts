import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import { defaultDirectory } from "../../src/backends/file/index.js";
import { Cli, conclave, scratch } from "./process.js";

const FIELDS = ["event", "at", "election", "candidate", "token", "value"];

describe("conclave leader", () => {
  it("exits 0 when someone leads and 1 when nobody does", async () => {
    const directory = scratch();
    const at = ["--lock-dir", directory];
    const nobody = await conclave(["leader", "x", ...at]);
    expect(nobody).toMatchObject({ code: 1, out: `nobody leads "x" in ${directory}`, err: "" });
    const vacant = await conclave(["leader", "x", "--json", ...at]);
    expect(vacant.code).toBe(1);
    expect(JSON.parse(vacant.out)).toMatchObject({
      event: "leader",
      election: "x",
      candidate: null,
      token: null,
      value: null,
    });

    const cli = new Cli(["run", "x", "--id", "a", "--value", "http://a:1", "--log", "json", ...at]);
    const { candidate, token } = await cli.event("elected");
    const someone = await conclave(["leader", "x", ...at]);
    expect(someone.code).toBe(0);
    expect(someone.out).toContain(`${candidate} leads "x" with token ${token}, value "http://a:1", since `);
    const json = await conclave(["leader", "x", "--json"], {
      CONCLAVE_BACKEND: pathToFileURL(directory).href,
    });
    expect(json.code).toBe(0);
    const line = JSON.parse(json.out) as Record<string, unknown>;
    expect(Object.keys(line)).toEqual(FIELDS);
    expect(line).toMatchObject({ event: "leader", election: "x", candidate, token, value: "http://a:1" });

    cli.kill("SIGTERM");
    await cli.exit;
    expect((await conclave(["leader", "x", ...at])).code).toBe(1);
  });

  it("exits 3 when the store cannot be asked", async () => {
    const directory = scratch();
    mkdirSync(join(directory, "elections"));
    // Where the records of "x" should be, there is something that cannot be listed.
    writeFileSync(join(directory, "elections", "n-x"), "");
    const { code, out, err } = await conclave(["leader", "x", "--lock-dir", directory]);
    expect(code).toBe(3);
    expect(out).toBe("");
    expect(err).toMatch(/^conclave: .+/);
    expect(err.split("\n")).toHaveLength(1);
    expect((await conclave(["run", "x", "--try", "--lock-dir", directory])).code).toBe(3);
  });

  it("ends when its directory cannot be made", async () => {
    const directory = process.platform === "linux" ? "/proc/1/conclave" : "/dev/null/conclave";
    const { code, err } = await conclave(["leader", "x", "--lock-dir", directory]);
    expect(code).toBe(3);
    expect(err).toMatch(/^conclave: opening the directory/);
  });

  it("shows the default directory", async () => {
    const name = `nobody-${process.pid}-${Date.now()}`;
    const { code, out } = await conclave(["leader", name]);
    expect(code).toBe(1);
    expect(out).toBe(
      `nobody leads "${name}" in ${defaultDirectory()} (the default directory), on this machine only`,
    );
  });

  it("prints what a stranger wrote without letting it steer the terminal", async () => {
    const directory = scratch();
    const cli = new Cli([
      "run",
      "x",
      "--value",
      "\u001b[31m\u009b2J",
      "--log",
      "json",
      "--lock-dir",
      directory,
    ]);
    await cli.event("elected");
    const { out } = await conclave(["leader", "x", "--lock-dir", directory]);
    expect(out).toContain("\\u001b[31m\\u009b2J");
    // oxlint-disable-next-line no-control-regex -- that there is none is the point
    expect(out).not.toMatch(/[\u0000-\u0009\u001b\u0080-\u009f]/);
  });
});

describe("conclave observe", () => {
  it("follows every change until it is told to stop", async () => {
    const directory = scratch();
    const at = ["--lock-dir", directory];
    const json = new Cli(["observe", "x", "--json", ...at]);
    const text = new Cli(["observe", "x", ...at]);
    await json.event("leader", (who) => who === null);
    await text.line(/VACANT/);
    const cli = new Cli(["run", "x", "--id", "a", "--log", "json", ...at]);
    const { candidate, token } = await cli.event("elected");
    expect(await json.event("leader", (who) => who === candidate)).toMatchObject({
      token,
      value: candidate,
      election: "x",
    });
    expect(await text.line(/NEW LEADER/)).toContain(`${candidate} leads with token ${token}`);
    cli.kill("SIGTERM");
    await json.line(() => json.json.length >= 3);
    for (const [observer, signal] of [
      [json, "SIGINT"],
      [text, "SIGTERM"],
    ] as const) {
      observer.kill(signal);
      expect(await observer.exit).toEqual({ code: 0, signal: null });
    }
    expect(json.json.map(({ event, candidate: who }) => [event, who])).toEqual([
      ["leader", null],
      ["leader", candidate],
      ["leader", null],
    ]);
    expect(json.json.every((line) => Object.keys(line).join() === FIELDS.join())).toBe(true);
  });

  it("reports faults of the store and goes on", async () => {
    const directory = scratch();
    mkdirSync(join(directory, "elections"));
    writeFileSync(join(directory, "elections", "n-x"), "");
    const cli = new Cli(["observe", "x", "--json", "--lock-dir", directory]);
    expect(await cli.event("error")).toMatchObject({
      election: "x",
      candidate: null,
      token: null,
      reason: expect.any(String),
    });
    cli.kill("SIGTERM");
    expect(await cli.exit).toEqual({ code: 0, signal: null });
  });
});
