/** Candidates of the command line as real processes. */
import { readdirSync } from "node:fs";
import { hostname } from "node:os";
import { describe, expect, it } from "vitest";
import { Cli, conclave, scratch } from "./process.js";
import type { JsonLine } from "./process.js";

const EVENTS = ["store", "elected", "ended", "jeopardy", "safe", "leader", "work", "error"];

function candidate(directory: string, id: string, ...flags: string[]): Cli {
  return new Cli(["run", "x", "--id", id, "--lock-dir", directory, "--log", "json", "--ttl", "4s", ...flags]);
}

/** The schema that `--log json` promises. */
function wellFormed(line: JsonLine): void {
  expect(EVENTS).toContain(line.event);
  expect(Math.abs(line.at - Date.now())).toBeLessThan(600_000);
  expect(typeof line.election).toBe("string");
  const vacant = line.event === "leader" && line.candidate === null;
  if (vacant) expect(line.token).toBeNull();
  else expect(line.candidate).toMatch(/^.+-[0-9a-f]{16}$/);
  if (!vacant && line.event !== "error" && line.event !== "store") expect(line.token).toMatch(/^[0-9]+$/);
  if (line.event === "ended") expect(["resigned", "closed", "expired", "revoked"]).toContain(line.reason);
}

describe("conclave run", () => {
  it("hands over in good order: work stopped, leadership given up, next one elected, exit 0", async () => {
    const directory = scratch();
    const first = candidate(directory, "first", "--work-every", "50ms");
    const elected = await first.event("elected");
    await first.event("work");
    const second = candidate(directory, "second", "--work-every", "50ms");
    await second.event("leader", (who) => who === elected.candidate);
    first.kill("SIGTERM");
    const next = await second.event("elected");
    expect(await first.exit).toEqual({ code: 0, signal: null });
    await second.event("work");
    second.kill("SIGINT");
    expect(await second.exit).toEqual({ code: 0, signal: null });

    for (const line of [...first.json, ...second.json]) wellFormed(line);
    expect([...first.err, ...second.err]).toEqual([]);
    const lines = first.json;
    const ended = lines.find(({ event }) => event === "ended")!;
    expect(ended).toMatchObject({
      reason: "resigned",
      election: "x",
      candidate: elected.candidate,
      token: elected.token,
    });
    const works = lines.filter(({ event }) => event === "work");
    expect(works.every(({ at, token }) => at <= ended.at && token === elected.token)).toBe(true);
    expect(lines.findLastIndex(({ event }) => event === "work")).toBeLessThan(lines.indexOf(ended));
    expect(BigInt(next.token!)).toBeGreaterThan(BigInt(elected.token!));
    // Same machine, same clock; the two processes read it independently, so allow for its grain.
    expect(next.at).toBeGreaterThan(ended.at - 1);
  });

  it("exits at once at the second signal, without resigning", async () => {
    const directory = scratch();
    const cli = candidate(directory, "stubborn");
    const { token } = await cli.event("elected");
    // Stopped, so that both signals are there before it can answer the first.
    for (const signal of ["SIGSTOP", "SIGTERM", "SIGINT", "SIGCONT"] as const) cli.kill(signal);
    const { code } = await cli.exit;
    expect([130, 143]).toContain(code);
    expect(cli.json.some(({ event }) => event === "ended")).toBe(false);
    const heir = candidate(directory, "heir");
    expect(BigInt((await heir.event("elected")).token!)).toBeGreaterThan(BigInt(token!));
  });

  it("prints a line each second for people, and clear ones when the leader changes", async () => {
    const directory = scratch();
    const flags = ["--lock-dir", directory, "--ttl", "4s", "--work-every", "200ms"];
    const leader = new Cli(["run", "--node-id", "anna", ...flags]);
    await leader.line(/^👑 \[anna\] ELECTED/);
    const follower = new Cli(["run", "--id", "bert", ...flags]);
    expect(await leader.line(/Status/)).toMatch(/^👑 \[anna\] Status: LEADER +\d\d:\d\d:\d\d +token \d+/);
    expect(await follower.line(/Status/)).toMatch(
      /^👥 \[bert\] Status: FOLLOWER +\d\d:\d\d:\d\d +anna-[0-9a-f]+ leads with token \d+/,
    );
    expect(await leader.line(/WORK/)).toMatch(/piece \d+ under token \d+/);
    leader.kill("SIGINT");
    expect(await leader.line(/RESIGNED/)).toMatch(/^👋 \[anna\] RESIGNED .*given up/);
    await follower.line(/^👑 \[bert\] ELECTED/);
    expect(await leader.exit).toMatchObject({ code: 0 });
    follower.kill("SIGTERM");
    expect(await follower.exit).toMatchObject({ code: 0 });
    expect(leader.out[0]).toMatch(/candidate anna-[0-9a-f]+ in election "leader-election-demo", ttl 4s/);
    expect(leader.out[1]).toBe(`elections live in ${directory}`);
    expect(leader.out.join("")).not.toContain("\u001b");
  });

  it("says why when leadership is lost", async () => {
    const directory = scratch();
    const cli = new Cli(["run", "x", "--id", "a", "--lock-dir", directory, "--ttl", "1s"]);
    await cli.line(/ELECTED/);
    cli.kill("SIGSTOP");
    const heir = candidate(directory, "heir");
    await heir.event("elected");
    cli.kill("SIGCONT");
    expect(await cli.line(/LEADERSHIP LOST/)).toMatch(/^💔 \[a\] LEADERSHIP LOST .*token \d+ expired: /);
    expect(await cli.line(/NEW LEADER/)).toMatch(/heir-[0-9a-f]+ leads with token/);
  });

  it("rotates with --max-term", async () => {
    const directory = scratch();
    const both = [
      candidate(directory, "a", "--max-term", "300ms"),
      candidate(directory, "b", "--max-term", "300ms"),
    ];
    await Promise.all(both.map((cli) => cli.event("elected")));
    await Promise.all(both.map((cli) => cli.event("ended")));
    for (const cli of both) {
      expect(cli.json.find(({ event }) => event === "ended")).toMatchObject({ reason: "resigned" });
    }
  });

  it("stops when nobody reads its output any more", async () => {
    const cli = candidate(scratch(), "a", "--work-every", "20ms");
    await cli.event("work");
    cli.child.stdout!.destroy();
    expect(await cli.exit).toEqual({ code: 0, signal: null });
  });

  it("leaves no temporary file behind", async () => {
    const directory = scratch();
    const cli = candidate(directory, "a", "--work-every", "20ms");
    await cli.event("work");
    cli.kill("SIGTERM");
    await cli.exit;
    const names = readdirSync(directory, { recursive: true, withFileTypes: true });
    expect(names.filter((entry) => entry.isFile()).every(({ name }) => /^(first|[0-9]+)$/.test(name))).toBe(
      true,
    );
  });
});

describe("conclave run --try", () => {
  it("leads one term and exits 0, or exits 1 and says who leads", async () => {
    const directory = scratch();
    const leader = candidate(directory, "leader");
    const elected = await leader.event("elected");
    const loser = candidate(directory, "loser", "--try");
    expect(await loser.exit).toEqual({ code: 1, signal: null });
    expect(loser.json.at(-1)).toMatchObject({
      event: "leader",
      candidate: elected.candidate,
      token: elected.token,
    });
    expect(loser.json.filter(({ event }) => event === "leader")).toHaveLength(1);
    leader.kill("SIGTERM");
    await leader.exit;
    const winner = candidate(directory, "winner", "--try", "--max-term", "200ms");
    expect(await winner.exit).toEqual({ code: 0, signal: null });
    expect(winner.json.filter(({ event }) => event === "elected")).toHaveLength(1);
    expect(winner.json.at(-1)).toMatchObject({ event: "ended", reason: "resigned" });
  });

  it("resigns at a signal", async () => {
    const directory = scratch();
    const cli = candidate(directory, "a", "--try", "--work-every", "20ms");
    await cli.event("work");
    cli.kill("SIGTERM");
    expect(await cli.exit).toEqual({ code: 0, signal: null });
    expect(cli.json.at(-1)).toMatchObject({ event: "ended", reason: "resigned" });
    expect((await conclave(["leader", "x", "--lock-dir", directory])).code).toBe(1);
  });
});

describe("the candidate's id", () => {
  const idOf = async (env: NodeJS.ProcessEnv, ...flags: string[]): Promise<string | null> => {
    const args = [
      "run",
      "x",
      "--try",
      "--max-term",
      "100ms",
      "--log",
      "json",
      "--lock-dir",
      scratch(),
      ...flags,
    ];
    const { out } = await conclave(args, env);
    const line = JSON.parse(out.split("\n").find((text) => text.includes("elected"))!) as JsonLine;
    return line.candidate?.replace(/-[0-9a-f]{16}$/, "") ?? null;
  };

  it("comes from the flag, then CONCLAVE_ID, INSTANCE_ID, POD_NAME, then the host's name", async () => {
    const env = { CONCLAVE_ID: "c", INSTANCE_ID: "i", POD_NAME: "p" };
    expect(await idOf(env, "--id", "flag")).toBe("flag");
    expect(await idOf(env)).toBe("c");
    expect(await idOf({ ...env, CONCLAVE_ID: "" })).toBe("i");
    expect(await idOf({ POD_NAME: "p" })).toBe("p");
    expect(await idOf({})).toBe(hostname());
  });
});
