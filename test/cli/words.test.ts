/** What a candidate says when it is stopped is true for it: leader or follower, signal or end of the command. */
import { describe, expect, it } from "vitest";
import { Cli, inProcess, scratch } from "./process.js";

async function stopped(cli: Cli): Promise<void> {
  cli.kill("SIGTERM");
  await cli.exit;
}

describe("a candidate that is stopped", () => {
  it("says what it does, in run", async () => {
    const at = ["--lock-dir", scratch()];
    const leader = new Cli(["run", "jobs", "--id", "a", ...at]);
    await leader.line(/ELECTED/);
    const follower = new Cli(["run", "jobs", "--id", "b", ...at]);
    await follower.line(/FOLLOWER/);
    await stopped(follower);
    await stopped(leader);
    expect(follower.out.join("\n")).toContain("SIGTERM: no longer campaigning (send it again");
    expect(leader.out.join("\n")).toContain("SIGTERM: stopping the work and resigning (send it again");
  });

  it.each([
    ["by a signal", "echo begun; exec sleep 60", "told to stop: SIGTERM"],
    ["by the end of its command", "echo begun", "the command has ended"],
  ])("says why, in exec, %s", async (_, script, why) => {
    const at = ["--lock-dir", scratch()];
    const cli = new Cli(["exec", "jobs", "--log", "json", ...at, "--", "sh", "-c", script]);
    await cli.line(/^begun$/);
    if (script.includes("sleep")) await stopped(cli);
    await cli.exit;
    const ended = cli.err.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line) as object);
    expect(ended.at(-1)).toMatchObject({ event: "ended", reason: "resigned", detail: why });
    expect((await inProcess(["history", "jobs", ...at])).out).toContain(why);
  });
});
