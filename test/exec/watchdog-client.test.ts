/** The wrapper's side of the watchdog: what it believes, what it does when the watchdog is lost. No process is started. */
import { EventEmitter } from "node:events";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { ContainmentMethod } from "../../src/exec/containment-method.js";
import { killDeadlineOf } from "../../src/exec/kill-deadline.js";
import { WatchdogClient } from "../../src/exec/watchdog-client.js";
import type { Running } from "../../src/exec/watchdog-client.js";
import type { FromWatchdog, Order, ToWatchdog } from "../../src/exec/wire.js";
import { outcome } from "../support/hand-backend.js";

class Child extends EventEmitter {
  readonly pid = 4_000;
  connected = true;
  readonly sent: ToWatchdog[] = [];
  readonly kills: string[] = [];
  send(message: ToWatchdog): void {
    this.sent.push(message);
  }
  kill(signal: string): void {
    this.kills.push(signal);
  }
  disconnect(): void {
    this.connected = false;
  }
}

const fakes = vi.hoisted(() => ({ spawn: vi.fn(), contained: vi.fn() }));
vi.mock("node:child_process", () => ({ spawn: fakes.spawn }));
vi.mock("../../src/exec/containment.js", async (original) => ({
  ...(await original<typeof import("../../src/exec/containment.js")>()),
  openContainment: fakes.contained,
}));

const METHOD: ContainmentMethod = { kind: "cgroup", cgroup: "/sys/fs/cgroup/x", limits: false, why: null };
const READY: FromWatchdog = { kind: "ready", failed: null, method: METHOD, backstop: 4_001 };
const REQUEST = {
  ...{ command: "job", args: [], env: {}, mark: "m", graceMs: 1, reserveMs: 1, slackMs: 1, marginMs: 1 },
};
const SILENCE_MS = 5_000;

let child: Child;
/** What becomes of the command, as its containment shows it. */
let living: boolean;
let contained: string[];
let notices: string[];

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  [child, living, contained, notices] = [new Child(), true, [], []];
  fakes.spawn.mockImplementation(() => child);
  fakes.contained.mockImplementation((order: Order) => ({
    order,
    adopt: (pid: number) => void contained.push(`adopt ${pid}`),
    kill: () => void contained.push("kill"),
    state: () => (living ? "alive" : "gone"),
    close: () => void contained.push("close"),
  }));
});
afterEach(() => {
  expect(vi.getTimerCount(), "timers that are left").toBe(0);
  vi.useRealTimers();
});

async function open(): Promise<WatchdogClient> {
  const opening = WatchdogClient.open({}, "auto");
  child.emit("message", READY);
  return opening;
}

function start(client: WatchdogClient): Running {
  const given = {
    warned: () => void notices.push("warned"),
    unknown: (processes: readonly string[]) => void notices.push(...processes),
  };
  return client.start(REQUEST, deadline(), { notices: given, silenceMs: SILENCE_MS });
}

const deadline = (): ReturnType<typeof killDeadlineOf> => killDeadlineOf({ remainingMs: 10_000 }, 0);
const hear = (message: FromWatchdog): void => void child.emit("message", message);
const sent = (): string[] => child.sent.map(({ kind, run }) => `${kind} ${run}`);
const OVER = { kind: "over", run: 1, code: 3, signal: null, failed: null, stopped: null } as const;

describe("a watchdog", () => {
  it("that is ready says how it contains commands, and who must be dead with it", async () => {
    const client = await open();
    expect([client.alive, client.method, client.pids]).toEqual([true, METHOD, [4_000, 4_001]]);
  });

  it.each([
    [
      "cannot do what was asked for",
      { ...READY, failed: "no cgroup", method: null },
      /^no cgroup; nothing was run$/,
    ],
    ["says something else first", { kind: "heard", run: 1 }, /does not answer/],
    ["says what nobody understands", { kind: "hello" }, /could not be started/],
  ])("that %s is ended, and the reason told", async (_, message, why) => {
    const opening = WatchdogClient.open({}, "cgroup");
    child.emit("message", message);
    await expect(opening).rejects.toThrow(why);
    expect(child.kills).toEqual(["SIGKILL"]);
  });

  it("that ends, or says nothing for twenty seconds, was not started", async () => {
    const ended = WatchdogClient.open({}, "auto");
    child.emit("exit", 1);
    await expect(ended).rejects.toThrow(/could not be started/);
    const silent = outcome(WatchdogClient.open({}, "auto"));
    await vi.advanceTimersByTimeAsync(19_999);
    expect(silent.settled).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(silent.error).toMatchObject({ message: expect.stringContaining("could not be started") });
    expect(child.kills).toEqual(["SIGKILL", "SIGKILL"]);
  });

  it("that is let go is waited for", async () => {
    const client = await open();
    const closing = outcome(client.close());
    await vi.advanceTimersByTimeAsync(0);
    expect([child.connected, closing.settled]).toEqual([false, false]);
    child.emit("exit", 0);
    await vi.advanceTimersByTimeAsync(0);
    expect([closing.settled, client.alive]).toEqual([true, false]);
  });
});

describe("a command", () => {
  it("has a cgroup of its own, and its messages go by its number", async () => {
    const client = await open();
    const [first, second] = [start(client), start(client)];
    second.signal("SIGUSR1");
    first.extend(deadline());
    expect(sent()).toEqual(["start 1", "start 2", "signal 2", "extend 1"]);
    const orders = child.sent.flatMap((message) => (message.kind === "start" ? [message.order] : []));
    expect(orders.map(({ cgroup, contain }) => [cgroup, contain])).toEqual([
      ["/sys/fs/cgroup/x/conclave-4000-1", "cgroup"],
      ["/sys/fs/cgroup/x/conclave-4000-2", "cgroup"],
    ]);
  });

  it.each([
    [{ code: 3 }, { status: 3 }],
    [
      { code: null, signal: "SIGTERM" },
      { status: 143, signal: "SIGTERM" },
    ],
    [
      { code: null, failed: "ENOENT" },
      { status: 127, failed: "ENOENT" },
    ],
    [
      { code: null, failed: "EACCES" },
      { status: 126, failed: "EACCES" },
    ],
    [
      { code: null, stopped: "jeopardy" },
      { status: 0, stopped: "jeopardy" },
    ],
  ] as const)("that is over ended as it says: %o", async (message, end) => {
    const running = start(await open());
    hear({ ...OVER, ...message });
    expect(await running.ended).toEqual({
      ...{ kind: "ended", signal: null, stopped: null, failed: null },
      ...end,
    });
  });

  it("that is over is neither extended nor signalled nor killed any more", async () => {
    const client = await open();
    const running = start(client);
    hear(OVER);
    running.extend(deadline());
    running.signal("SIGTERM");
    running.kill();
    hear({ kind: "warned", run: 1 });
    expect([sent(), contained, notices]).toEqual([["start 1"], [], []]);
  });

  it("is killed by both sides", async () => {
    start(await open()).kill();
    expect([sent(), contained]).toEqual([["start 1", "kill 1"], ["kill"]]);
  });

  it("is told of, run by run", async () => {
    start(await open());
    hear({ kind: "started", run: 1, pid: 77 });
    hear({ kind: "warned", run: 2 });
    hear({ kind: "warned", run: 1 });
    hear({ kind: "unknown", run: 1, processes: ["9 (agent)"] });
    expect([contained, notices]).toEqual([["adopt 77"], ["warned", "9 (agent)"]]);
  });
});

describe("silence", () => {
  it("for longer than allowed ends the watchdog, counted from the first extension that was not heard", async () => {
    const running = start(await open());
    for (let passed = 0; passed <= SILENCE_MS; passed += 1_000) {
      running.extend(deadline());
      expect(child.kills).toEqual([]);
      await vi.advanceTimersByTimeAsync(1_000);
    }
    const before = child.sent.length;
    running.extend(deadline());
    expect([child.kills, child.sent.length]).toEqual([["SIGKILL"], before]);
  });

  it("is over with an answer", async () => {
    const running = start(await open());
    for (let round = 0; round < 5; round++) {
      running.extend(deadline());
      await vi.advanceTimersByTimeAsync(SILENCE_MS - 1);
      hear({ kind: "heard", run: 1 });
    }
    expect(child.kills).toEqual([]);
  });
});

describe("a watchdog that dies", () => {
  it("is not alive from then on; what ran is killed until nothing lives, and then unguarded", async () => {
    const client = await open();
    const running = start(client);
    const ended = outcome(running.ended);
    const closing = outcome(client.close());
    hear({ kind: "started", run: 1, pid: 77 });
    child.emit("exit", null);
    expect(client.alive).toBe(false);
    await vi.advanceTimersByTimeAsync(200);
    expect([ended.settled, closing.settled]).toEqual([false, false]);
    expect(contained.filter((each) => each === "kill").length).toBeGreaterThan(5);
    expect(contained).not.toContain("close");
    living = false;
    await vi.advanceTimersByTimeAsync(20);
    expect([ended.value, contained.at(-1), closing.settled]).toEqual([{ kind: "unguarded" }, "close", true]);
  });

  it("before it has said who the command is leaves time for it to be born", async () => {
    const ended = outcome(start(await open()).ended);
    living = false;
    child.emit("exit", null);
    await vi.advanceTimersByTimeAsync(480);
    expect(ended.settled).toBe(false);
    await vi.advanceTimersByTimeAsync(40);
    expect(ended.value).toEqual({ kind: "unguarded" });
  });

  it("runs nothing any more", async () => {
    const client = await open();
    child.emit("exit", null);
    const running = start(client);
    running.kill();
    expect(await running.ended).toEqual({ kind: "unguarded" });
    expect(sent()).toEqual([]);
  });
});
