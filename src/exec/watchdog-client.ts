/**
 * The wrapper's side of the watchdog, for one command or several: sends orders,
 * receives how commands ended. If the watchdog itself dies or stops answering,
 * the commands are killed here at once: a command must never run unguarded.
 */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { constants } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { systemClock } from "../kit/clock.js";
import { deferred } from "../kit/wait.js";
import type { Deferred } from "../kit/wait.js";
import { cgroupName } from "./cgroup.js";
import { openContainment } from "./containment.js";
import type { Containment } from "./containment.js";
import { newLimitMark } from "./limit-mark.js";
import type { ContainChoice, ContainmentMethod } from "./containment-method.js";
import { readLocksLimit } from "./procfs.js";
import type { FromWatchdog, KillDeadline, Order, Stopped, ToWatchdog } from "./wire.js";
import { isFromWatchdog, PIPE_FD } from "./wire.js";
import { keeper } from "../will/keeper.js";

const PROGRAM = fileURLToPath(new URL("./watchdog.js", import.meta.url));
const STARTUP_MS = 20_000;
const LOOK_MS = 20;
/** Renewals wait meanwhile. */
const LONGEST_KILL_MS = 20;
/** A command of which we know only the mark may be on the point of being born: keep looking this long. */
const UNBORN_MS = 500;

/** How a run ended. Nothing of it lives any more. */
export type CommandEnd =
  | {
      readonly kind: "ended";
      /** As a shell would say it: the exit code, or 128 and the number of the signal. */
      readonly status: number;
      readonly signal: NodeJS.Signals | null;
      readonly stopped: Stopped;
      readonly failed: string | null;
    }
  /** The watchdog was lost, so the command was killed. */
  | { readonly kind: "unguarded" };

/** What happens on the way. */
export interface Notices {
  /** SIGTERM was sent for want of a renewal. */
  warned(): void;
  /** The command has ended, but these processes may be of it, and may not be examined. */
  unknown(processes: readonly string[]): void;
}

interface Run {
  readonly number: number;
  /** As the watchdog has it, should that be lost. */
  readonly containment: Containment;
  readonly ending: Deferred<CommandEnd>;
  readonly notices: Notices;
  readonly silenceMs: number;
  pid: number | undefined;
  /** Since when an extension has not been heard. */
  unheardSince: number | undefined;
}

/** A command that runs. Nothing of what is asked of it does anything once it has ended. */
export interface Running {
  /** Settles when it has ended, however that came about, and nothing of it lives. Never rejects. */
  readonly ended: Promise<CommandEnd>;
  extend(deadline: KillDeadline): void;
  signal(signal: NodeJS.Signals): void;
  /** Ends it at once, all of it. */
  kill(): void;
}

/** What the watchdog decides about itself is left out. */
export type Request = Omit<Order, "contain" | "limit" | "cgroup">;

export class WatchdogClient {
  readonly #child: ChildProcess;
  readonly #gone = deferred<void>();
  readonly #runs = new Map<number, Run>();
  #last = 0;
  #alive = true;
  #method: ContainmentMethod | undefined;
  #backstop: number | undefined;

  /** Starts a watchdog and waits until it is there. Rejects if it cannot contain commands as was asked for. */
  static async open(env: NodeJS.ProcessEnv, contain: ContainChoice): Promise<WatchdogClient> {
    const { pipe } = keeper();
    const words = [PROGRAM, contain, ...(pipe === undefined ? [] : [String(PIPE_FD)])];
    const child = spawn(process.execPath, words, {
      // A session of its own: a Ctrl-C in the terminal is not for it.
      detached: true,
      // It holds the pipe of the last will as long as anything of a command lives.
      stdio: ["inherit", "inherit", "inherit", "ipc", pipe ?? "ignore"],
      env,
    });
    const watchdog = new WatchdogClient(child);
    await watchdog.#ready();
    return watchdog;
  }

  private constructor(child: ChildProcess) {
    this.#child = child;
    child.on("message", (message) => this.#hear(message));
    child.once("exit", () => void this.#died());
    child.on("error", () => {
      if (child.pid === undefined) void this.#died();
    });
  }

  /** Processes that act for us: the watchdog, and its backstop. */
  get pids(): readonly number[] {
    return [this.#child.pid, this.#backstop].filter((pid) => pid !== undefined);
  }

  /** How commands are contained. */
  get method(): ContainmentMethod {
    return this.#method!;
  }

  /** `false`: start another before campaigning. */
  get alive(): boolean {
    return this.#alive;
  }

  /** Starts a command, besides those that run. A watchdog that does not answer for `silenceMs` is taken for lost. */
  start(
    request: Request,
    deadline: KillDeadline,
    { notices, silenceMs }: Pick<Run, "notices" | "silenceMs">,
  ): Running {
    const number = ++this.#last;
    const ending = deferred<CommandEnd>();
    const order = this.#order(request, number);
    const run: Run = {
      number,
      containment: openContainment(order),
      ending,
      notices,
      silenceMs,
      pid: undefined,
      unheardSince: undefined,
    };
    if (this.#alive) {
      this.#runs.set(number, run);
      this.#send({ kind: "start", run: number, order, deadline });
    } else ending.resolve({ kind: "unguarded" });
    const going = (): boolean => this.#runs.has(number);
    return {
      ended: ending.promise,
      extend: (until) => {
        if (going()) this.#extend(run, until);
      },
      signal: (signal) => {
        if (going()) this.#send({ kind: "signal", run: number, signal });
      },
      kill: () => {
        if (going()) this.#kill(run);
      },
    };
  }

  #order(request: Request, number: number): Order {
    const { kind, cgroup, limits } = this.method;
    const inherited = limits ? readLocksLimit("self") : "gone";
    const limit = typeof inherited === "string" ? undefined : newLimitMark(inherited);
    const name = cgroupName(String(number), this.#child.pid);
    return {
      ...request,
      contain: kind,
      limit: limit?.toString() ?? null,
      cgroup: cgroup === null ? null : join(cgroup, name),
    };
  }

  #extend(run: Run, deadline: KillDeadline): void {
    const now = systemClock.now();
    if (run.unheardSince !== undefined && now - run.unheardSince > run.silenceMs) {
      // Stopped or stuck: it would not act if we died now. Its death is dealt with like any other.
      this.#child.kill("SIGKILL");
      return;
    }
    run.unheardSince ??= now;
    this.#send({ kind: "extend", run: run.number, deadline });
  }

  /** By both of us: the watchdog may be the one that is stuck. */
  #kill(run: Run): void {
    this.#send({ kind: "kill", run: run.number });
    run.containment.kill(LONGEST_KILL_MS);
  }

  /** Lets the watchdog go. It leaves when nothing of the command lives. */
  async close(): Promise<void> {
    if (this.#child.connected) this.#child.disconnect();
    await this.#gone.promise;
  }

  async #ready(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    try {
      const ready = await new Promise<FromWatchdog>((resolve, reject) => {
        const fail = (): void =>
          reject(new Error("the watchdog process could not be started; nothing was run"));
        timer = setTimeout(fail, STARTUP_MS);
        this.#child.once("exit", fail);
        this.#child.once("error", fail);
        this.#child.once("message", (message) => (isFromWatchdog(message) ? resolve(message) : fail()));
      });
      if (ready.kind !== "ready" || ready.method === null)
        throw new Error(
          "failed" in ready ? `${ready.failed}; nothing was run` : "the watchdog does not answer",
        );
      this.#method = ready.method;
      this.#backstop = ready.backstop ?? undefined;
    } catch (error) {
      this.#child.kill("SIGKILL");
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  #hear(message: unknown): void {
    if (!isFromWatchdog(message) || message.kind === "ready") return;
    const run = this.#runs.get(message.run);
    if (run === undefined) return;
    switch (message.kind) {
      case "started":
        run.pid = message.pid;
        return run.containment.adopt(message.pid);
      case "heard":
        run.unheardSince = undefined;
        return;
      case "warned":
        return run.notices.warned();
      case "unknown":
        return run.notices.unknown(message.processes);
      case "over":
        this.#runs.delete(run.number);
        return run.ending.resolve(commandEndOf(message));
    }
  }

  #send(message: ToWatchdog): void {
    // Fails only when it is gone; then its exit says so.
    if (this.#child.connected) this.#child.send(message, undefined, undefined, () => {});
  }

  async #died(): Promise<void> {
    if (!this.#alive) return;
    this.#alive = false;
    const runs = [...this.#runs.values()];
    this.#runs.clear();
    await Promise.all(
      runs.map(async (run) => {
        await extinguish(run);
        run.ending.resolve({ kind: "unguarded" });
      }),
    );
    this.#gone.resolve();
  }
}

/** What the watchdog would have done. */
async function extinguish({ pid, containment }: Run): Promise<void> {
  const until = systemClock.now() + (pid === undefined ? UNBORN_MS : 0);
  do {
    containment.kill(LONGEST_KILL_MS);
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  } while (systemClock.now() < until || containment.state() !== "gone");
  containment.close();
}

function commandEndOf({ code, signal, failed, stopped }: FromWatchdog & { kind: "over" }): CommandEnd {
  return { kind: "ended", status: statusOf(code, signal, failed), signal, stopped, failed };
}

function statusOf(code: number | null, signal: NodeJS.Signals | null, failed: string | null): number {
  if (failed !== null) return failed === "ENOENT" ? 127 : 126;
  return signal === null ? (code ?? 0) : 128 + constants.signals[signal];
}
