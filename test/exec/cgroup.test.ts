/** What a killed watchdog leaves of its cgroups is removed by the next one, and nothing else is. */
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { cannotUse, Cgroup, cgroupName, ownCgroup } from "../../src/exec/cgroup.js";
import { asOther, lackingUsers, scratchForOther } from "./escaping.js";
import { exec, isAlive, scratch, until } from "./wrapped.js";

const own = ownCgroup();
const why = "why" in own ? own.why : cannotUse(own.directory);
const parent = "directory" in own ? own.directory : "";

describe.skipIf(why !== undefined)(`a cgroup (${why ?? parent})`, () => {
  const made: string[] = [];

  afterEach(() => {
    for (const directory of made.splice(0)) if (existsSync(directory)) rmdirSync(directory);
  });

  it("of a watchdog that lives stays, that of one that is dead is removed", () => {
    // Ended and reaped when this returns.
    const dead = spawnSync("true").pid;
    const [left, kept] = [cgroupName("1", dead), cgroupName("test-kept")].map((name) => join(parent, name));
    made.push(left!, kept!);
    for (const directory of made) mkdirSync(directory);
    mkdirSync(join(left!, cgroupName("inner", dead)));
    expect(cannotUse(parent)).toBeUndefined();
    expect(made.map((directory) => existsSync(directory))).toEqual([false, true]);
  });

  it("contains what is started in it from its first instruction, and we are out of it again", async () => {
    const cgroup = new Cgroup(join(parent, cgroupName("test-launch")));
    made.push(cgroup.directory);
    cgroup.create();
    const child = cgroup.launch(() => spawn("sleep", ["60"], { detached: true, stdio: "ignore" }));
    expect(cgroup.populated()).toBe(true);
    cgroup.kill();
    await until(() => !cgroup.populated() && !isAlive(child.pid!));
    // We live, so we were not in it.
    cgroup.remove();
    expect(existsSync(cgroup.directory)).toBe(false);
  });

  it("is used unless told otherwise, and it is said which", async () => {
    const run = (...flags: string[]) => exec(["x", "--lock-dir", scratch(), ...flags, "--", "true"]);
    expect((await run()).err).toMatch(/CONTAINED .*by a cgroup in \//);
    expect((await run("--contain", "scan")).err).toMatch(/CONTAINED .*tracking its processes in \/proc/);
    expect((await run("--log", "json")).err).toMatch(/"event":"contained".*"reason":"cgroup"/);
  });
});

const lacking = lackingUsers();

describe.skipIf(lacking !== undefined)(`without a cgroup (${lacking ?? "another user"})`, () => {
  it("asked for by name, nothing is run: 125, and why; else the scan is used, and that is said", async () => {
    const { directory } = scratchForOther();
    const run = (...flags: string[]) =>
      exec(["x", "--lock-dir", join(directory, "lock"), ...flags, "--", "echo", "run"], {
        through: asOther(),
      });
    const refused = await run("--contain", "cgroup");
    expect(refused).toMatchObject({ code: 125, out: "" });
    expect(refused.err).toMatch(/--contain cgroup: .*; nothing was run/);
    const scanned = await run();
    expect(scanned).toMatchObject({ code: 0, out: "run" });
    expect(scanned.err).toMatch(/CONTAINED .*tracking its processes in \/proc \(no cgroup: /);
  });
});
