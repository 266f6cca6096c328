/** `conclave cron`: a command on a schedule, once across all who wait for it. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import { backstopOf, commandLine, isAlive } from "../exec/wrapped.js";
import { Cli, conclave, inProcess, scratch } from "./process.js";

function replica(directory: string, script: string, ...flags: string[]): Cli {
  const options = ["--lock-dir", directory, "--ttl", "2s", "--log", "json", ...flags];
  return new Cli(["cron", "* * * * * *", "tick", ...options, "--", "sh", "-c", script]);
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 50));
}

function lines(file: string): string[] {
  return existsSync(file) ? readFileSync(file, "utf8").trimEnd().split("\n") : [];
}

/** Process id of its watchdog. */
function watchdogOf(cli: Cli): number {
  const { pid } = cli.child;
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").map(Number);
  return children.find((child) => isAlive(child) && /watchdog\.js/.test(commandLine(child)))!;
}

/** Processes that the newest record of the election lists. */
function listed(directory: string): number[] {
  const folder = join(directory, "elections", "n-tick");
  const heads = readdirSync(folder)
    .map((name) => lines(join(folder, name))[0])
    .filter((line) => line?.startsWith("{") === true)
    .map((line) => JSON.parse(line!) as { number: string; host?: { processes: { pid: number }[] } });
  const newest = heads.toSorted((a, b) => Number(BigInt(b.number) - BigInt(a.number)))[0];
  return newest?.host?.processes.map(({ pid }) => pid) ?? [];
}

describe("conclave cron", () => {
  it("three of them run each instant once, also over the death of the leader; status tells", async () => {
    const directory = scratch();
    const log = join(directory, "log");
    const script = `echo "$CONCLAVE_SCHEDULED_AT $CONCLAVE_ATTEMPT $CONCLAVE_TOKEN" >> ${log}`;
    const crew = [1, 2, 3].map((n) => replica(directory, script, "--id", `r${n}`));
    const read = (): string[] => {
      try {
        return readFileSync(log, "utf8").trimEnd().split("\n");
      } catch {
        return [];
      }
    };
    await until(() => read().length >= 2);
    const events = (cli: Cli) => cli.err.map((line) => JSON.parse(line) as Record<string, unknown>);
    const leader = crew.find((cli) => events(cli).some((line) => line["event"] === "elected"))!;
    leader.kill("SIGKILL");
    await leader.exit;
    const before = read().length;
    await until(() => read().length >= before + 2);
    for (const cli of crew) cli.kill("SIGTERM");
    await Promise.all(crew.map((cli) => cli.exit));
    const lines = read().map((line) => line.split(" "));
    const instants = lines.map(([at]) => at);
    expect(new Set(instants).size).toBe(instants.length);
    for (const [at, attempt, token] of lines) {
      expect(at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.000Z$/);
      expect(attempt).toBe("1");
      expect(token).toMatch(/^\d+$/);
    }
    expect(new Set(lines.map(([, , token]) => token)).size).toBe(2);
    const status = await conclave(["cron", "status", "tick", "--json", "--lock-dir", directory]);
    expect(status.code).toBe(0);
    const runs = status.out
      .split("\n")
      .map((line) => JSON.parse(line) as { scheduledAt: string; state: string });
    const done = runs.filter((run) => run.state === "done").map((run) => run.scheduledAt);
    expect(instants).toEqual(expect.arrayContaining(done));
    const table = await conclave(["cron", "status", "tick", "--lock-dir", directory]);
    expect(table.out).toMatch(/^"tick" has dealt with everything up to .*Z\n/);
    // Not always the first: on a busy machine an instant may have been passed over before.
    expect(table.out).toMatch(/^\S+Z {2}done {2,}attempt 1 {2}token \d+/m);
  });

  it("a command that fails is noted with its exit code; one that takes too long is ended", async () => {
    const directory = scratch();
    const failing = replica(directory, "exit 3");
    const told = (cli: Cli, state: string) => cli.err.some((line) => line.includes(`"state":"${state}"`));
    await until(() => told(failing, "failed"));
    expect(failing.err.join("\n")).toContain("exit code 3");
    failing.kill("SIGTERM");
    expect(await failing.exit).toEqual({ code: 0, signal: null });
    const slow = replica(directory, "sleep 30", "--timeout", "200ms");
    await until(() => told(slow, "timed-out"));
    slow.kill("SIGTERM");
    expect(await slow.exit).toEqual({ code: 0, signal: null });
  });

  it("tells the command who it works for, and nothing of the store", async () => {
    const directory = scratch();
    const out = join(directory, "out");
    const script = `echo "$CONCLAVE_ELECTION $CONCLAVE_ID $CONCLAVE_BACKEND$ETCD_PASSWORD." >> ${out}`;
    const flags = ["--backend", pathToFileURL(directory).href, "--ttl", "2s", "--id", "me"];
    const env = { ETCD_PASSWORD: "secret", CONCLAVE_BACKEND: "etcd://u:p@nowhere" };
    const cli = new Cli(["cron", "* * * * * *", "tick", ...flags, "--", "sh", "-c", script], env);
    await until(() => existsSync(out));
    cli.kill("SIGTERM");
    expect(await cli.exit).toEqual({ code: 0, signal: null });
    expect(readFileSync(out, "utf8").split("\n")[0]).toMatch(/^tick me-[0-9a-f]+ \.$/);
  });

  it("runs that overlap are guarded each by itself, and all die with the wrapper", async () => {
    const directory = scratch();
    const pids = join(directory, "pids");
    // Every second run ends by itself: that must not touch the others.
    const script = `echo $$ >> ${pids}; test $(($(wc -l < ${pids}) % 2)) -eq 0 || exec sleep 60`;
    const cli = replica(directory, script, "--overlap", "parallel");
    const read = (): number[] => lines(pids).map(Number);
    await until(() => read().length >= 4);
    const sleeping = (): number[] => read().filter(isAlive);
    await until(() => sleeping().length >= 2);
    cli.kill("SIGKILL");
    await cli.exit;
    await until(() => sleeping().length === 0);
  });

  it("a watchdog that dies between runs, or during one, is replaced by one that the record names", async () => {
    const directory = scratch();
    const pids = join(directory, "pids");
    const cli = replica(directory, `echo $$ >> ${pids}; test $(wc -l < ${pids}) -lt 3 || exec sleep 60`);
    await until(() => lines(pids).length >= 1);
    const first = watchdogOf(cli);
    process.kill(first, "SIGKILL");
    // Two more runs: the second of them stays.
    await until(() => lines(pids).length >= 3);
    const second = watchdogOf(cli);
    expect(second).not.toBe(first);
    expect(listed(directory)).toEqual([cli.child.pid, second, backstopOf(second)]);
    const last = Number(lines(pids)[2]);
    process.kill(second, "SIGKILL");
    await until(() => !isAlive(last));
    await until(() => lines(pids).length >= 4);
    cli.kill("SIGTERM");
    await cli.exit;
    expect(lines(pids).map(Number).filter(isAlive)).toEqual([]);
  });

  it("a schedule nobody has run is 1; bad usage is 2, with a line that helps", async () => {
    const directory = scratch();
    const none = await inProcess(["cron", "status", "nothing", "--lock-dir", directory]);
    expect(none.code).toBe(1);
    expect(none.out).toMatch(/nobody has run "nothing" yet/);
    const unquoted = await inProcess(["cron", "0", "9", "*", "*", "*", "x", "--", "true"]);
    expect(unquoted.code).toBe(2);
    expect(unquoted.err).toBe(
      `conclave: "0" is no pattern: quote it, as in conclave cron '0 9 * * *' NAME -- command`,
    );
    const idle = await inProcess(["cron", "* * * * *", "x", "--lock-dir", directory]);
    expect(idle.code).toBe(2);
    expect(idle.err).toMatch(/write the command after --: conclave cron PATTERN NAME -- command/);
    const missing = await inProcess([
      "cron",
      "* * * * *",
      "x",
      "--lock-dir",
      directory,
      "--",
      "no-such-command",
    ]);
    expect(missing.code).toBe(127);
    expect(missing.err).toMatch(/"no-such-command" not found; not campaigning/);
    const wrong = await inProcess(["cron", "99 * * * *", "x", "--lock-dir", directory, "--", "true"]);
    expect(wrong.code).toBe(2);
    expect(wrong.err).toMatch(/cron text "99 \* \* \* \*" cannot be read/);
    const zone = await inProcess([
      "cron",
      "* * * * *",
      "x",
      "--time-zone",
      "Mars",
      "--lock-dir",
      directory,
      "--",
      "true",
    ]);
    expect(zone).toMatchObject({ code: 2 });
  });
});
