/** The wrapper's own decisions, on a virtual clock: what it does with terms, signals and ends. No process is started. */
import { getEventListeners } from "node:events";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Election } from "../../src/election/election.js";
import type { Line } from "../../src/terminal/lines.js";
import { ConclaveError } from "../../src/kit/errors.js";
import { MARK_VARIABLE } from "../../src/exec/procfs.js";
import { SignalForwarder } from "../../src/exec/signal-forwarder.js";
import type { CommandEnd, Request } from "../../src/exec/watchdog-client.js";
import type { KillDeadline } from "../../src/exec/wire.js";
import { Wrapper } from "../../src/exec/wrapper.js";
import type { WrapperPolicy } from "../../src/exec/wrapper.js";
import { MARGIN_MS, openScene, outcome, TTL_MS } from "../support/hand-backend.js";
import type { Scene } from "../support/hand-backend.js";
import type { SetClock } from "../support/set-clock.js";

const time = vi.hoisted((): { clock: SetClock | undefined } => ({ clock: undefined }));
vi.mock("../../src/kit/clock.js", async (original) => ({
  ...(await original<typeof import("../../src/kit/clock.js")>()),
  systemClock: {
    now: () => time.clock!.now(),
    wall: () => time.clock!.wall(),
    boot: () => time.clock!.boot(),
    after: (delayMs: number, callback: () => void) => time.clock!.after(delayMs, callback),
    random: () => time.clock!.random(),
  },
}));

/** A command, as the test ends it. */
interface Command {
  readonly request: Request;
  readonly extensions: KillDeadline[];
  readonly signals: string[];
  kills: number;
  end(how: Partial<Extract<CommandEnd, { kind: "ended" }>> | "unguarded"): Promise<void>;
}

let scene: Scene;
let forwarder: SignalForwarder;
let commands: Command[];
let lines: Line[];
let notes: string[];
/** In the order in which it happened. */
let happened: string[];
const send = (signal: NodeJS.Signals): boolean => process.emit(signal, signal);

const settle = (): Promise<void> => scene.clock.advance(0);

const watchdog = {
  start: (request: Request, _: KillDeadline, given: { notices: unknown; silenceMs: number }) => {
    happened.push("start");
    expect(given.silenceMs).toBe(TTL_MS - MARGIN_MS);
    let resolve: (end: CommandEnd) => void = () => {};
    const ended = new Promise<CommandEnd>((done) => (resolve = done));
    const command: Command = {
      ...{ request, extensions: [], signals: [], kills: 0 },
      end: async (how) => {
        happened.push("end");
        const base = { kind: "ended", status: 0, signal: null, stopped: null, failed: null } as const;
        resolve(how === "unguarded" ? { kind: how } : { ...base, ...how });
        await settle();
      },
    };
    commands.push(command);
    return {
      ended,
      extend: (deadline: KillDeadline) => void command.extensions.push(deadline),
      signal: (signal: string) => void command.signals.push(signal),
      kill: () => void command.kills++,
    };
  },
};

beforeEach(() => {
  scene = openScene({ ttlMs: TTL_MS });
  time.clock = scene.clock;
  scene.backend.onCampaign = () => void happened.push("campaign");
  scene.backend.onRelease = () => void happened.push("release");
  forwarder = new SignalForwarder();
  [commands, lines, notes, happened] = [[], [], [], []];
});

afterEach(async () => {
  forwarder[Symbol.dispose]();
  await scene.election.close();
  expect(scene.clock.timers, "timers that are left").toBe(0);
});

function wrapper(election: Election, policy: Partial<WrapperPolicy> = {}): Wrapper {
  return new Wrapper({
    ...{ election, forwarder, passEnv: new Set<string>(), command: ["job", "now"] },
    watchdogs: {
      ready: async () => {
        happened.push("ready");
        return watchdog;
      },
    },
    notes: {
      line: (line) => void lines.push(line),
      status: () => {},
      note: (text) => void notes.push(text),
      flush: async () => {},
    },
    stopBudget: { graceMs: 300, reserveMs: 70, slackMs: 40, silenceMs: TTL_MS - MARGIN_MS },
    policy: { onExit: "stop", onLoss: "wait", try: false, timeoutMs: undefined, ...policy },
  });
}

async function started(policy: Partial<WrapperPolicy> = {}): Promise<ReturnType<typeof outcome>> {
  const running = outcome(wrapper(scene.election, policy).run());
  await settle();
  return running;
}

const eventsOf = (all: readonly Line[]): unknown[] => all.map(({ event }) => event);

describe("a command", () => {
  it("gets its order with all of the budget, and the token", async () => {
    await started();
    expect(commands[0]!.request).toMatchObject({
      ...{ command: "job", args: ["now"], graceMs: 300, reserveMs: 70, slackMs: 40, marginMs: MARGIN_MS },
      env: { CONCLAVE_TOKEN: "1", CONCLAVE_ELECTION: "e" },
    });
    const { mark, env } = commands[0]!.request;
    expect(env[MARK_VARIABLE]?.split(" ")).toContain(mark);
    await commands[0]!.end({});
  });

  it("is extended by every renewal that succeeds, by none that fails, and by none after its end", async () => {
    const running = await started();
    const [command] = commands;
    await scene.clock.advance(TTL_MS / 3);
    expect(command!.extensions).toHaveLength(1);
    scene.backend.onRenew = () => Promise.reject(new Error("away"));
    await scene.clock.advance(TTL_MS / 3);
    expect(command!.extensions).toHaveLength(1);
    scene.backend.onRenew = () => {};
    await scene.clock.advance(TTL_MS / 3);
    const extended = command!.extensions.length;
    expect(extended).toBeGreaterThan(1);
    await command!.end({ status: 3 });
    expect(running).toMatchObject({ value: { kind: "done", status: 3 } });
    await scene.election.campaign();
    await scene.clock.advance(TTL_MS);
    expect(command!.extensions).toHaveLength(extended);
  });

  it("is started after the watchdog and the term are there, and has ended before the term is given up", async () => {
    const running = await started();
    expect(happened).toEqual(["ready", "campaign", "start"]);
    expect(running.settled).toBe(false);
    await commands[0]!.end({ status: 7 });
    expect(happened).toEqual(["ready", "campaign", "start", "end", "release"]);
    expect(running.value).toEqual({ kind: "done", status: 7 });
  });

  it("is killed when its term is lost, once, and nothing that comes after its end is", async () => {
    const running = await started({ onLoss: "exit" });
    scene.backend.onRenew = () => "lost";
    await scene.clock.advance(TTL_MS / 3);
    expect(commands[0]!.kills).toBe(1);
    expect(running.settled).toBe(false);
    await commands[0]!.end({ status: 137, signal: "SIGKILL", stopped: "lost" });
    expect(running.value).toMatchObject({
      kind: "lost",
      why: expect.stringContaining("held by someone else"),
    });
    expect(commands[0]!.kills).toBe(1);
  });

  it("that has ended is neither extended by renewals nor killed by the end of its term", async () => {
    await started({ onExit: "restart" });
    await commands[0]!.end({});
    await scene.clock.advance(TTL_MS / 3);
    expect(commands.map(({ extensions }) => extensions.length)).toEqual([0, 1]);
    expect(getEventListeners(scene.election.term!.signal, "abort"), "one for each that runs").toHaveLength(1);
    expect(getEventListeners(forwarder.signal, "abort")).toHaveLength(0);
    scene.backend.onRenew = () => "lost";
    await scene.clock.advance(TTL_MS / 3);
    expect(commands.map(({ kills }) => kills)).toEqual([0, 1]);
    send("SIGTERM");
    await commands[1]!.end({ stopped: "lost" });
  });

  it("gets the signals until it has ended, and the next one gets its own", async () => {
    const running = await started({ onExit: "restart" });
    send("SIGUSR1");
    await commands[0]!.end({});
    send("SIGUSR1");
    await scene.clock.advance(1_000);
    send("SIGUSR2");
    expect(commands.map(({ signals }) => signals)).toEqual([["SIGUSR1"], ["SIGUSR2"]]);
    send("SIGTERM");
    await commands[1]!.end({ status: 143, signal: "SIGTERM" });
    expect(running.value).toEqual({ kind: "done", status: 143 });
  });

  it("that died of a SIGHUP that was passed on is not started again", async () => {
    const running = await started({ onExit: "restart" });
    send("SIGHUP");
    await commands[0]!.end({ status: 129, signal: "SIGHUP" });
    await scene.clock.advance(60_000);
    expect([running.value, commands.length]).toEqual([{ kind: "done", status: 129 }, 1]);
  });
});

describe("after its end", () => {
  it.each([
    [{ status: 3 }, /^"job" ended with 3$/],
    [{ status: 143, signal: "SIGTERM" }, /^"job" ended with SIGTERM$/],
    [{ status: 127, failed: "ENOENT" }, /^"job" could not be started: ENOENT$/],
    [{ status: 137, stopped: "lost" }, /^"job" was killed because leadership was lost$/],
    ["unguarded", /^the watchdog was lost: "job" was killed$/],
  ] as const)("how it ended is said: %o", async (how, said) => {
    await started({ onLoss: "exit" });
    await commands[0]!.end(how);
    expect(notes).toEqual([expect.stringMatching(said)]);
  });

  it("a watchdog that was lost is a loss, and says so; told to stop it is the signal's status", async () => {
    const first = await started({ onLoss: "exit" });
    await commands[0]!.end("unguarded");
    expect(first.value).toEqual({ kind: "lost", why: "the watchdog was lost" });
    const second = await started({ onLoss: "exit" });
    send("SIGINT");
    await commands[1]!.end("unguarded");
    expect(second.value).toEqual({ kind: "done", status: 130 });
  });

  it("a loss that nobody has told of yet is one all the same", async () => {
    const running = await started({ onLoss: "exit" });
    await commands[0]!.end({ status: 143, signal: "SIGTERM", stopped: "jeopardy" });
    expect(running.value).toEqual({ kind: "lost", why: "it could not be renewed in time" });
    expect(happened.at(-1)).toBe("release");
  });

  it("with --on-loss wait it campaigns again, with a watchdog that lives", async () => {
    await started();
    await commands[0]!.end("unguarded");
    await settle();
    expect(happened.filter((each) => each === "ready" || each === "campaign")).toEqual([
      ...["ready", "campaign", "ready", "campaign"],
    ]);
    send("SIGTERM");
    await commands[1]!.end({});
  });

  it("with --on-exit resign others go first, for longer each time; one that lasted starts anew", async () => {
    await started({ onExit: "resign" });
    const pauses: number[] = [];
    const next = async (): Promise<void> => {
      const [before, since] = [commands.length, scene.clock.now()];
      await commands.at(-1)!.end({});
      while (commands.length === before) await scene.clock.advance(50);
      pauses.push(scene.clock.now() - since);
    };
    await next();
    await next();
    await next();
    await scene.clock.advance(10_100);
    await next();
    expect(pauses[1]).toBeGreaterThan(pauses[0]!);
    expect(pauses[2]).toBeGreaterThan(pauses[1]!);
    expect(pauses[3]).toBe(pauses[0]);
    send("SIGTERM");
    await commands.at(-1)!.end({});
  });

  it("with --on-exit restart it is started again later each time; one that lasted starts anew", async () => {
    await started({ onExit: "restart" });
    const pauses: number[] = [];
    const next = async (): Promise<void> => {
      const [before, since] = [commands.length, scene.clock.now()];
      await commands.at(-1)!.end({});
      while (commands.length === before) await scene.clock.advance(10);
      pauses.push(scene.clock.now() - since);
    };
    await next();
    await next();
    await next();
    await scene.clock.advance(10_100);
    await next();
    expect(pauses[2]).toBeGreaterThan(pauses[0]!);
    expect(pauses[3]).toBe(pauses[0]);
    expect(happened.filter((each) => each === "campaign")).toHaveLength(1);
    send("SIGTERM");
    await commands.at(-1)!.end({});
  });

  it("a term that is lost, or a signal, ends the pause before a restart", async () => {
    const lost = await started({ onExit: "restart", onLoss: "exit" });
    await commands[0]!.end({});
    scene.backend.onRenew = () => "lost";
    await scene.election.term!.proclaim("x").catch(() => {});
    scene.backend.onProclaim = () => "lost";
    await scene.election.term?.proclaim("x").catch(() => {});
    await settle();
    expect(lost.value).toMatchObject({ kind: "lost" });
    [scene.backend.onRenew, scene.backend.onProclaim] = [() => {}, () => {}];
    const told = await started({ onExit: "restart" });
    await commands[1]!.end({});
    send("SIGTERM");
    await settle();
    expect(told.value).toEqual({ kind: "stopped", status: 143 });
    expect(commands).toHaveLength(2);
  });
});

describe("while it waits to be elected", () => {
  const silent = (): Promise<never> => new Promise(() => {});

  it("a signal ends it, and so does the time limit; neither leaves anything", async () => {
    scene.backend.onCampaign = silent;
    const late = await started({ timeoutMs: 400 });
    await scene.clock.advance(399);
    expect(late.settled).toBe(false);
    await scene.clock.advance(1);
    expect(late.value).toEqual({ kind: "late" });
    const stopped = await started({ timeoutMs: 400 });
    send("SIGINT");
    await settle();
    expect(stopped.value).toEqual({ kind: "stopped", status: 130 });
    await scene.clock.advance(TTL_MS);
  });

  it("one that was told to stop before does not campaign", async () => {
    send("SIGTERM");
    const stopped = await started();
    expect([stopped.value, happened]).toEqual([{ kind: "stopped", status: 143 }, ["ready"]]);
  });

  it("the time limit ends with the waiting", async () => {
    await started({ timeoutMs: 3_600_000 });
    await commands[0]!.end({}); // no timer is left
  });

  it("the time limit is for the election alone", async () => {
    const running = await started({ timeoutMs: 400 });
    await scene.clock.advance(1_000);
    expect([running.settled, commands[0]!.kills]).toEqual([false, 0]);
    await commands[0]!.end({});
    expect(running.value).toEqual({ kind: "done", status: 0 });
  });

  it("--try asks once, and says that someone else leads", async () => {
    scene.backend.onCampaign = ({ wait }) => (expect(wait).toBe(false), null);
    expect((await started({ try: true })).value).toEqual({ kind: "taken" });
  });

  it("who leads is told; once it leads itself that is not any more", async () => {
    let push: (token: bigint) => void = () => {};
    scene.backend.leaders = async function* ({ signal }) {
      yield { candidate: "other", token: 1n, value: "" };
      const more = new Promise<bigint>((resolve) => (push = resolve));
      const gone = new Promise<undefined>((resolve) =>
        signal.addEventListener("abort", () => resolve(undefined), { once: true }),
      );
      const token = await Promise.race([more, gone]);
      if (token !== undefined) yield { candidate: "third", token, value: "" };
    };
    let grant = (): void => {};
    scene.backend.onCampaign = () => new Promise<void>((resolve) => (grant = resolve));
    await started();
    expect(eventsOf(lines)).toEqual(["leader"]);
    scene.backend.token = 1n;
    grant();
    await settle();
    push(9n);
    await settle();
    expect(eventsOf(lines)).toEqual(["leader", "elected"]);
    await commands[0]!.end({});
  });
});

describe("a store that refuses", () => {
  const refuse = (): Promise<never> => Promise.reject(new ConclaveError("forbidden", "not you"));

  it("at first is a mistake of ours", async () => {
    scene.backend.onCampaign = refuse;
    expect((await started()).error).toMatchObject({ code: "forbidden" });
  });

  it("after it has accepted us is waited for, and that is said", async () => {
    const running = await started({ onExit: "resign" });
    scene.backend.onCampaign = refuse;
    await commands[0]!.end({});
    lines.length = 0;
    await scene.clock.advance(3 * TTL_MS);
    expect(running.settled).toBe(false);
    expect(eventsOf(lines)).toContain("error");
    scene.backend.onCampaign = () => {};
    await scene.clock.advance(3 * TTL_MS);
    expect(commands).toHaveLength(2);
    send("SIGTERM");
    await commands[1]!.end({});
  });

  it("is not waited for beyond the time limit", async () => {
    const running = await started({ onExit: "resign", timeoutMs: 100 });
    scene.backend.onCampaign = refuse;
    await commands[0]!.end({});
    await scene.clock.advance(3 * TTL_MS);
    expect(running.value).toEqual({ kind: "late" });
  });
});

it("what happens to the term is said, until it is over", async () => {
  const running = await started();
  scene.backend.onRenew = () => Promise.reject(new ConclaveError("unavailable", "away"));
  await scene.clock.advance(TTL_MS / 3);
  scene.backend.onRenew = () => {};
  await scene.clock.advance(TTL_MS / 3);
  await commands[0]!.end({});
  expect(running.settled).toBe(true);
  expect(eventsOf(lines)).toEqual(["elected", "jeopardy", "safe", "ended"]);
  expect(lines[1]).toMatchObject({ event: "jeopardy", token: "1", code: "unavailable" });
  const term = await scene.election.campaign();
  await term.resign();
  expect(lines, "nobody listens any more").toHaveLength(4);
});
