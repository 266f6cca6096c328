/** Rows J of the table in docs/guide/exec.md. The store is a directory, and something that is none campaigns in its way. */
import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { backstopOf, exec, isAlive, program, scratch, until, Wrapped } from "./wrapped.js";

const TTL = ["--ttl", "3s"];

/** A store that can be taken away and given back. */
class Store {
  readonly directory = scratch();
  readonly flags = ["--lock-dir", this.directory, ...TTL];

  takeAway(): void {
    renameSync(join(this.directory, "elections"), join(this.directory, "away"));
    writeFileSync(join(this.directory, "elections"), "");
  }

  giveBack(): void {
    rmSync(join(this.directory, "elections"));
    renameSync(join(this.directory, "away"), join(this.directory, "elections"));
  }
}

const signalled = (label: string): string[] => ["--", process.execPath, program("signalled"), label];
const pidOf = async (wrapped: Wrapped, nth = 1): Promise<number> =>
  Number((await wrapped.line(/ up \d+/, { nth })).split(" ")[2]);

describe("loss", () => {
  it("J1 no renewal succeeds: SIGTERM, and a command that obeys has its grace", async () => {
    const store = new Store();
    const command = "trap 'sleep 0.3; echo tidy; exit 0' TERM; echo up; while :; do sleep 0.05; done";
    const flags = ["--lock-dir", store.directory, "--ttl", "6s", "--grace", "1.4s"];
    const wrapped = new Wrapped(["x", ...flags, "--", "sh", "-c", command]);
    await wrapped.line(/^up/);
    const first = await wrapped.elected();
    store.takeAway();
    await wrapped.line(/^tidy/);
    store.giveBack();
    expect(await wrapped.elected(2)).toBeGreaterThan(first);
    await wrapped.line(/^up/, { nth: 2 });
  });

  it("J2 one that does not obey: SIGKILL, and it is dead at the deadline", async () => {
    const store = new Store();
    const wrapped = new Wrapped(["x", ...store.flags, "--on-loss", "exit", ...signalled("deaf")]);
    const pid = await pidOf(wrapped);
    store.takeAway();
    await wrapped.line(/^deaf SIGTERM/);
    expect(isAlive(pid)).toBe(true);
    await wrapped.line(/was killed because leadership was lost/, { from: "err" });
    expect(isAlive(pid)).toBe(false);
    expect(await wrapped.exit).toBe(120);
  });

  it("J3 a short fault that is over before SIGTERM is due: nothing happens", async () => {
    const store = new Store();
    const wrapped = new Wrapped(["x", ...store.flags, "--grace", "100ms", ...signalled("command")]);
    const pid = await pidOf(wrapped);
    store.takeAway();
    await wrapped.line(/IN JEOPARDY/, { from: "err" });
    store.giveBack();
    await wrapped.line(/SAFE AGAIN/, { from: "err" });
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    expect(isAlive(pid)).toBe(true);
    expect(wrapped.out).toHaveLength(1);
  });

  it("J4 the store says that another leads: SIGKILL at once, no SIGTERM", async () => {
    const store = new Store();
    const wrapped = new Wrapped(["x", ...store.flags, ...signalled("command")]);
    const pid = await pidOf(wrapped);
    rmSync(store.directory, { recursive: true, force: true, maxRetries: 5 });
    await wrapped.line(/revoked/, { from: "err" });
    await until(() => !isAlive(pid), 1_000);
    expect(wrapped.out.some((line) => /SIGTERM/.test(line))).toBe(false);
  });

  it("J5 told to stop while the store is away: the exit code is the command's", async () => {
    const store = new Store();
    const wrapped = new Wrapped([
      "x",
      ...store.flags,
      "--",
      "sh",
      "-c",
      "trap 'exit 5' TERM; echo up; while :; do sleep 0.05; done",
    ]);
    await wrapped.line(/^up/);
    store.takeAway();
    await wrapped.line(/IN JEOPARDY/, { from: "err" });
    wrapped.kill("SIGTERM");
    expect(await wrapped.exit).toBe(5);
  });
});

describe("the record", () => {
  it("J6 lists the wrapper, its watchdog and the backstop: all must be dead before anyone takes over without waiting", async () => {
    const store = new Store();
    const flags = ["--lock-dir", store.directory, "--ttl", "20s"];
    const wrapped = new Wrapped(["x", ...flags, ...signalled("command")]);
    await pidOf(wrapped);
    const watchdog = await wrapped.watchdog();
    const expected = new Set([wrapped.pid, watchdog, backstopOf(watchdog)!]);
    const room = join(store.directory, "elections", "n-x");
    for (const name of readdirSync(room)) {
      const listed = readFileSync(join(room, name), "utf8").matchAll(/"pid":(\d+)/g);
      expect(new Set([...listed].map((match) => Number(match[1])))).toEqual(expected);
    }
    wrapped.kill("SIGKILL");
    const at = performance.now();
    expect((await exec(["x", ...flags, "--", "echo", "heir"])).out).toBe("heir");
    // Well before the lease has run out: the dead-process rule has spoken.
    expect(performance.now() - at).toBeLessThan(15_000);
  });
});
