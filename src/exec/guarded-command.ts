/**
 * The watchdog's side of one command: starts it in a session of its own, kills
 * it at the deadline, and goes on until none of its processes is left.
 */
import { spawn } from "node:child_process";
import type { ChildProcess, StdioOptions } from "node:child_process";
import { deferred } from "../kit/wait.js";
import type { Charge } from "./backstop.js";
import { openContainment } from "./containment.js";
import type { Containment } from "./containment.js";
import { ReceivedDeadline } from "./kill-deadline.js";
import { lookUp } from "./lookup.js";
import { findPrlimit } from "./containment-method.js";
import { earlierMs } from "./stop-budget.js";
import { signalGroup } from "./signals.js";
import { PIPE_FD } from "./wire.js";
import type { FromWatchdog, KillDeadline, Order, Stopped } from "./wire.js";

/** Timers stop while the machine sleeps: check this often whether it did, and what the command has started. */
const TICK_MS = 100;
/** Looking for processes may take this share of the time. */
const LOOK_SHARE = 0.05;
/** Never less often: on an overloaded host a look takes long, and the longer the pause the more there is to find. */
const LONGEST_PAUSE_MS = 200;
/** Sooner while there is more to examine than a look has time for. */
const CATCH_UP_MS = 20;
const FIRST_LOOK_MS = 2;
const LONGEST_LOOK_MS = 100;
/** Other commands of this watchdog wait meanwhile. */
const LONGEST_KILL_MS = 50;

interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly failed: string | null;
}

export class GuardedCommand {
  /** Settles when the command has ended and nothing of it lives. */
  readonly over: Promise<void>;
  readonly #run: number;
  readonly #order: Order;
  readonly #tell: (message: FromWatchdog) => void;
  readonly #deadline: ReceivedDeadline;
  readonly #over = deferred<void>();
  readonly #containment: Containment;
  #root: number | undefined;
  #timer: NodeJS.Timeout | undefined;
  #killTimer: NodeJS.Timeout | undefined;
  #nextLook = 0;
  #stopped: Stopped = null;
  #warned = false;
  #killed = false;
  #unknownReported = false;

  constructor(run: number, order: Order, deadline: KillDeadline, tell: (message: FromWatchdog) => void) {
    this.over = this.#over.promise;
    this.#run = run;
    this.#order = order;
    this.#tell = tell;
    this.#containment = openContainment(order);
    this.#deadline = new ReceivedDeadline(deadline, order.marginMs);
    // The message may have been delayed.
    if (this.#deadline.remainingMs() <= 0) {
      this.#stopped = "jeopardy";
      this.#report({ code: null, signal: null, failed: null });
    } else this.#start();
  }

  /** For the backstop: later than we would act, and before the deadline. `undefined`: it has been killed already. */
  get charge(): Charge | undefined {
    if (this.#root === undefined || this.#killed) return undefined;
    const leftMs = this.#deadline.remainingMs() + this.#order.reserveMs / 2;
    return { leftMs, targets: this.#containment.targets() };
  }

  /** Once SIGTERM has been sent for want of a renewal, a late one does not take it back. */
  extend(deadline: KillDeadline): void {
    if (!this.#warned) this.#deadline.extend(deadline);
    this.#tell({ kind: "heard", run: this.#run });
  }

  /** Passes a signal on to the process group. */
  signal(signal: NodeJS.Signals): void {
    if (this.#root !== undefined) signalGroup(this.#root, signal);
  }

  /** Ends it at once, all of it. */
  kill(stopped: "jeopardy" | "lost"): void {
    this.#stopped ??= stopped;
    this.#killed = true;
    if (this.#root !== undefined) this.#killUntilGone(FIRST_LOOK_MS);
  }

  #start(): void {
    const { command, env } = this.#order;
    const status = lookUp(command, env["PATH"] ?? "/usr/bin:/bin");
    if (status !== 0) return this.#fail(status === 127 ? "ENOENT" : "EACCES");
    let child: ChildProcess;
    try {
      child = this.#containment.launch(() => this.#spawn());
    } catch (error) {
      return this.#fail(codeOf(error));
    }
    if (child.pid === undefined) {
      child.once("error", (error) => this.#fail(codeOf(error)));
      return;
    }
    // Heard only for signals that could not be sent, which are not sent this way.
    child.on("error", () => {});
    this.#root = child.pid;
    this.#containment.adopt(child.pid);
    child.once("exit", (code, signal) => void this.#clear({ code, signal, failed: null }));
    this.#tell({ kind: "started", run: this.#run, pid: child.pid });
    this.#watch();
  }

  /** `prlimit` sets the limit and becomes the command: no process more, and the environment stays as it is. */
  #spawn(): ChildProcess {
    const { command, args, env, limit } = this.#order;
    // Whatever of the command lives holds the pipe: also if wrapper and watchdog are killed, leadership is given back after it.
    const held = process.argv[3] === String(PIPE_FD) ? [PIPE_FD] : [];
    const stdio: StdioOptions = ["inherit", "inherit", "inherit", ...held];
    const options = { detached: true, stdio, env: { ...env } };
    const prlimit = limit === null ? undefined : findPrlimit();
    if (prlimit === undefined) return spawn(command, args, options);
    return spawn(prlimit, [`--locks=${limit}:${limit}`, "--", command, ...args], options);
  }

  #watch(): void {
    this.#look();
    const left = this.#leftMs();
    if (left <= 0) return this.kill("jeopardy");
    const { graceMs } = this.#order;
    if (!this.#warned && left <= graceMs) {
      this.#warned = true;
      this.#stopped ??= "jeopardy";
      this.signal("SIGTERM");
      // A stopped process would receive it too late.
      this.signal("SIGCONT");
      this.#tell({ kind: "warned", run: this.#run });
    }
    const next = this.#warned ? left : left - graceMs;
    const look = Math.max(this.#nextLook - performance.now(), CATCH_UP_MS);
    this.#timer = setTimeout(() => this.#watch(), Math.min(Math.max(1, next), look, TICK_MS));
  }

  /** Where it takes long to find what the command has started, killing begins earlier; at most by the slack. */
  #leftMs(): number {
    return this.#deadline.remainingMs() - earlierMs(this.#containment.lookMs, this.#order);
  }

  #look(): void {
    if (performance.now() < this.#nextLook) return;
    const all = this.#containment.look();
    const pause = all ? Math.min(this.#containment.lookMs / LOOK_SHARE, LONGEST_PAUSE_MS) : CATCH_UP_MS;
    this.#nextLook = performance.now() + pause;
  }

  /** Kills, and again whatever turns up, until nothing of it lives. */
  #killUntilGone(pause: number): void {
    clearTimeout(this.#killTimer);
    if (this.#root === undefined) return;
    const settled = this.#containment.kill(LONGEST_KILL_MS);
    const next = settled ? Math.min(2 * pause, LONGEST_LOOK_MS) : FIRST_LOOK_MS;
    this.#killTimer = setTimeout(() => this.#killUntilGone(next), settled ? pause : 0);
  }

  /** The command has ended; what it left behind is given the same grace, within the deadline. */
  async #clear(exit: Exit): Promise<void> {
    const since = performance.now();
    for (let pause = FIRST_LOOK_MS; ; pause = Math.min(2 * pause, LONGEST_LOOK_MS)) {
      const state = this.#containment.state();
      if (state === "gone") break;
      if (state === "unknown") this.#reportUnknown();
      if (pause === FIRST_LOOK_MS && !this.#killed) this.signal("SIGTERM");
      if (performance.now() - since >= this.#order.graceMs && !this.#killed) {
        this.#killed = true;
        this.#killUntilGone(FIRST_LOOK_MS);
      }
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
    this.#report(exit);
  }

  /** While it is unknown whether a process belongs to the command, the command has not certainly ended. */
  #reportUnknown(): void {
    if (this.#unknownReported) return;
    this.#unknownReported = true;
    this.#tell({ kind: "unknown", run: this.#run, processes: [...this.#containment.unknowns()] });
  }

  #fail(failed: string): void {
    this.#report({ code: null, signal: null, failed });
  }

  #report(exit: Exit): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#killTimer);
    this.#root = undefined;
    this.#containment.close();
    this.#tell({ kind: "over", run: this.#run, ...exit, stopped: this.#stopped });
    this.#over.resolve();
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown";
}
