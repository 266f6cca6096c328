/** One command as its watchdog guards it: warned, extended, killed, reported. Real processes, no wrapper. */
import { readdirSync, readFileSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { GuardedCommand } from "../../src/exec/guarded-command.js";
import { killDeadlineOf } from "../../src/exec/kill-deadline.js";
import type { FromWatchdog, Order } from "../../src/exec/wire.js";

const HOUR_MS = 3_600_000;
/** Says that it hears SIGTERM, and does not obey. */
const STUBBORN = "trap '' TERM; while :; do sleep 0.05; done";
const OBEDIENT = "trap 'exit 3' TERM; while :; do sleep 0.05; done";

function order(script: string, over: Partial<Order> = {}): Order {
  return {
    command: "/bin/sh",
    args: ["-c", script],
    env: { PATH: "/usr/bin:/bin" },
    contain: "scan",
    mark: `test-${process.pid}-${Math.random()}`,
    limit: null,
    cgroup: null,
    graceMs: 1_000,
    reserveMs: 50,
    slackMs: 0,
    marginMs: 1_000,
    ...over,
  };
}

const open = new Set<GuardedCommand>();
afterEach(async () => {
  for (const command of open) command.kill("lost");
  await Promise.all([...open].map(({ over }) => over));
  open.clear();
});

interface Guarded {
  readonly command: GuardedCommand;
  readonly told: FromWatchdog[];
  /** Resolves with the first message of this kind. */
  heard<K extends FromWatchdog["kind"]>(kind: K): Promise<Extract<FromWatchdog, { kind: K }>>;
}

const deadlineIn = (ms: number): ReturnType<typeof killDeadlineOf> => killDeadlineOf({ remainingMs: ms }, 0);

function guard(what: Order, leftMs: number): Guarded {
  const told: FromWatchdog[] = [];
  const waiting = new Set<() => void>();
  const command = new GuardedCommand(7, what, deadlineIn(leftMs), (message) => {
    told.push(message);
    for (const wake of waiting) wake();
  });
  open.add(command);
  const heard = <K extends FromWatchdog["kind"]>(kind: K): Promise<Extract<FromWatchdog, { kind: K }>> =>
    new Promise((resolve) => {
      const look = (): void => {
        const found = told.find(
          (message): message is Extract<FromWatchdog, { kind: K }> => message.kind === kind,
        );
        if (found !== undefined) resolve(found);
      };
      waiting.add(look);
      look();
    });
  return { command, told, heard };
}

/** Processes of this group that have not ended; one that nobody has waited for yet is dead all the same. */
function livingOf(group: number): number[] {
  const stats = readdirSync("/proc").flatMap((name) => {
    try {
      return /^[0-9]+$/.test(name) ? [readFileSync(`/proc/${name}/stat`, "utf8")] : [];
    } catch {
      return []; // ended meanwhile
    }
  });
  return stats.flatMap((stat) => {
    const [state, , pgrp] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return state !== "Z" && Number(pgrp) === group ? [Number.parseInt(stat, 10)] : [];
  });
}

describe("a guarded command", () => {
  it("that has been warned is not saved by an extension that comes too late", async () => {
    const { command, heard } = guard(order(STUBBORN), 2_000);
    await heard("warned");
    command.extend(deadlineIn(HOUR_MS));
    await heard("heard");
    expect(await heard("over")).toMatchObject({ run: 7, signal: "SIGKILL", stopped: "jeopardy" });
    await command.over;
  });

  it("that obeys the warning has ended by itself, but for want of a renewal", async () => {
    const { command, heard } = guard(order(OBEDIENT, { graceMs: 20_000 }), 20_500);
    await heard("warned");
    expect(await heard("over")).toMatchObject({ code: 3, signal: null, stopped: "jeopardy" });
    expect(command.charge).toBeUndefined();
  });

  it("that is extended in time is not warned", async () => {
    const { command, told, heard } = guard(order(STUBBORN), 3_000);
    command.extend(deadlineIn(HOUR_MS));
    await heard("heard");
    await new Promise((resolve) => setTimeout(resolve, 3_200));
    expect(told.map(({ kind }) => kind)).toEqual(["started", "heard"]);
    expect(command.charge?.leftMs).toBeGreaterThan(HOUR_MS / 2);
    command.kill("lost");
    expect(command.charge, "there is nothing left for a backstop to do").toBeUndefined();
    expect(await heard("over")).toMatchObject({ signal: "SIGKILL", stopped: "lost" });
  });

  it("is not started when its time is up before its order arrives", async () => {
    const { command, told } = guard(order("exit 0"), -1);
    await command.over;
    expect(told).toEqual([
      { kind: "over", run: 7, code: null, signal: null, failed: null, stopped: "jeopardy" },
    ]);
  });

  it.each([
    ["/no/such/program", "ENOENT"],
    ["/etc/passwd", "EACCES"],
  ])("that cannot be started says why: %s", async (command, failed) => {
    const { command: guarded, told } = guard(order("", { command }), HOUR_MS);
    await guarded.over;
    expect(told).toMatchObject([{ kind: "over", failed, stopped: null }]);
  });

  it("is over only when what it left behind has ended too", async () => {
    const script = "trap '' TERM; (while :; do sleep 0.05; done) & exit 5";
    const { heard } = guard(order(script, { graceMs: 300 }), HOUR_MS);
    const { pid } = await heard("started");
    expect(await heard("over")).toMatchObject({ code: 5, stopped: null });
    expect(livingOf(pid)).toEqual([]);
  });
});
