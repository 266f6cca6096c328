/** The pure parts of exec. */
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { uptime } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { commandEnvironment, processMarkOf, watchdogEnvironment } from "../../src/exec/environment.js";
import { killDeadlineOf, ReceivedDeadline } from "../../src/exec/kill-deadline.js";
import { lookUp } from "../../src/exec/lookup.js";
import { earlierMs, stopBudgetOf } from "../../src/exec/stop-budget.js";
import { PidQueue } from "../../src/exec/pid-queue.js";
import { isFromWatchdog, isToWatchdog } from "../../src/exec/wire.js";
import { scratch } from "./wrapped.js";

describe("a deadline that is handed to another process", () => {
  it("is the holder's, less the reserve, and never later", () => {
    const deadline = killDeadlineOf({ remainingMs: 5_000 }, 100);
    const left = new ReceivedDeadline(deadline, 300).remainingMs();
    expect(left).toBeLessThanOrEqual(4_900);
    expect(left).toBeGreaterThan(4_000);
  });

  it("moves forward only", () => {
    const deadline = new ReceivedDeadline(killDeadlineOf({ remainingMs: 5_000 }, 0), 300);
    deadline.extend(killDeadlineOf({ remainingMs: 1_000 }, 0));
    expect(deadline.remainingMs()).toBeGreaterThan(3_000);
    deadline.extend(killDeadlineOf({ remainingMs: 9_000 }, 0));
    expect(deadline.remainingMs()).toBeGreaterThan(7_000);
  });

  it("has passed if the machine has slept since it was sent, and not if only the wall clock was set", () => {
    const sent = killDeadlineOf({ remainingMs: 5_000 }, 0);
    const slept = { ...sent, wall: sent.wall - 3_000, boot: sent.boot - 3_000 };
    expect(new ReceivedDeadline(slept, 300).remainingMs()).toBeLessThanOrEqual(0);
    const set = { ...sent, wall: sent.wall - 3_600_000 };
    expect(new ReceivedDeadline(set, 300).remainingMs()).toBeGreaterThan(4_000);
    expect(sent.boot).toBeLessThanOrEqual(uptime() * 1_000 + 20);
  });
});

describe("the grace", () => {
  const timing = {
    ttlMs: 10_000,
    renewMs: 3_000,
    marginMs: 1_500,
    attemptMs: 2_500,
    retryMs: 2_000,
    drainMs: 5_000,
    maxTermMs: undefined,
  };

  it("fits between a renewal that hangs and the deadline, or is refused with the arithmetic", () => {
    expect(stopBudgetOf(timing, undefined)).toEqual({
      graceMs: 1_450,
      reserveMs: 100,
      slackMs: 1_450,
      silenceMs: 8_500,
    });
    expect(stopBudgetOf(timing, 2_900).graceMs).toBe(2_900);
    expect(() => stopBudgetOf(timing, 2_901)).toThrow(
      /3s \+ .*2\.5s \+ grace 2\.901s \+ .*100ms = 8\.501s, but .*8\.5s .*at most 2\.9s/,
    );
  });
});

describe("the reserve", () => {
  it("grows with what a look for processes takes, up to the slack", () => {
    const stopBudget = { reserveMs: 40, slackMs: 250 };
    expect([0, 20, 100, 400].map((lookMs) => earlierMs(lookMs, stopBudget))).toEqual([0, 0, 160, 250]);
  });
});

describe("messages between wrapper and watchdog", () => {
  const deadline = killDeadlineOf({ remainingMs: 1_000 }, 0);
  const order = {
    command: "x",
    args: [],
    env: {},
    contain: "scan",
    mark: "m",
    limit: null,
    cgroup: null,
    graceMs: 1,
    reserveMs: 1,
    slackMs: 1,
    marginMs: 1,
  };

  it("are believed only if they are whole", () => {
    expect(isToWatchdog({ kind: "start", run: 1, order, deadline })).toBe(true);
    expect(isToWatchdog({ kind: "extend", run: 1, deadline })).toBe(true);
    expect(isToWatchdog({ kind: "signal", run: 1, signal: "SIGTERM" })).toBe(true);
    expect(isToWatchdog({ kind: "kill", run: 1 })).toBe(true);
    for (const bad of [
      null,
      "kill",
      { kind: "kill" },
      { kind: "signal", run: 1, signal: "SIGNOTHING" },
      { kind: "signal", run: 1, signal: "toString" },
      { kind: "extend", run: 1, deadline: { ...deadline, until: "soon" } },
      { kind: "extend", run: 1, deadline: { ...deadline, boot: Number.NaN } },
      { kind: "start", run: 1, order: { ...order, args: [1] }, deadline },
      { kind: "start", run: 1, order: { ...order, mark: "" }, deadline },
      { kind: "start", run: 1, order: { ...order, limit: "many" }, deadline },
      { kind: "start", run: 1, order: { ...order, contain: "jail" }, deadline },
      { kind: "start", run: 1, order: { ...order, contain: "cgroup", cgroup: null }, deadline },
      { kind: "start", run: 1, order: { ...order, contain: "cgroup", cgroup: "here" }, deadline },
      { kind: "start", run: 1, order: { ...order, slackMs: Number.NaN }, deadline },
    ]) {
      expect(isToWatchdog(bad), JSON.stringify(bad)).toBe(false);
    }
    const over = { kind: "over", run: 1, code: 0, signal: null, failed: null, stopped: null };
    expect(isFromWatchdog(over)).toBe(true);
    expect(isFromWatchdog({ ...over, signal: "x" })).toBe(false);
    expect(isFromWatchdog({ kind: "started", run: 1, pid: 1 })).toBe(false);
    expect(isFromWatchdog({ kind: "started", run: 1, pid: -1 })).toBe(false);
  });
});

describe("the environment", () => {
  const leadership = { election: "e", candidate: "c-1", token: 7n };

  it("carries the marks of every exec around it, the watchdog none", () => {
    const outer = commandEnvironment({ A: "1" }, new Set(), leadership);
    const inner = commandEnvironment(outer, new Set(), { ...leadership, candidate: "c-2" });
    expect(inner["CONCLAVE_EXEC"]).toBe(
      `${processMarkOf(leadership)} ${processMarkOf({ ...leadership, candidate: "c-2" })}`,
    );
    expect(inner).toMatchObject({ A: "1", CONCLAVE_ID: "c-2", CONCLAVE_TOKEN: "7" });
    expect(watchdogEnvironment(outer)).not.toHaveProperty("CONCLAVE_EXEC");
  });

  it("has marks without spaces, whatever the id", () => {
    expect(processMarkOf({ ...leadership, candidate: "a b\u00e9" })).toMatch(/^\S+$/);
  });
});

describe("looking a command up", () => {
  it("says what a shell would say", () => {
    const directory = scratch();
    mkdirSync(join(directory, "folder"));
    writeFileSync(join(directory, "plain"), "");
    writeFileSync(join(directory, "tool"), "");
    chmodSync(join(directory, "tool"), 0o755);
    const path = `/nowhere:${directory}`;
    expect(lookUp("tool", path)).toBe(0);
    expect(lookUp("plain", path)).toBe(126);
    expect(lookUp("folder", path)).toBe(126);
    expect(lookUp("nothing", path)).toBe(127);
    expect(lookUp(join(directory, "tool"), "")).toBe(0);
    expect(lookUp(join(directory, "tool/x"), "")).toBe(127);
  });
});

describe("numbers that wait to be examined", () => {
  const drain = (queue: PidQueue): (number | undefined)[] => Array.from({ length: 6 }, () => queue.take());

  it("are taken from the newest on, and every second time the oldest", () => {
    const queue = new PidQueue(false);
    queue.add([1, 2, 3]);
    queue.add([4, 5]);
    expect(drain(queue)).toEqual([5, 1, 4, 2, 3, undefined]);
    expect(queue.isEmpty).toBe(true);
  });

  it("are taken in turn where parents must come first", () => {
    const queue = new PidQueue(true);
    queue.add([1, 2, 3]);
    queue.add([4, 5]);
    expect(drain(queue)).toEqual([1, 2, 3, 4, 5, undefined]);
  });

  it("are limited", () => {
    const queue = new PidQueue(false);
    queue.add(Array.from({ length: 32_000 }, (_, index) => index));
    expect([queue.hasSpaceFor(768), queue.hasSpaceFor(769)]).toEqual([true, false]);
    queue.clear();
    expect([queue.isEmpty, queue.hasSpaceFor(32_768)]).toEqual([true, true]);
  });
});
