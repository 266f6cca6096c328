/**
 * The watchdog's side of one command: starts it in a session of its own, lets
 * it live as long as it may, and does not rest before nothing of it lives.
 */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { deferred } from "../../core/waiting.js";
import { ReceivedDeadline } from "./leave.js";
import { destroy, isAlive, signalGroup } from "./tree.js";
import type { Tree } from "./tree.js";
import type { FromWatchdog, Leave, Order, Stopped } from "./wire.js";

/** Timers stand still while the machine sleeps: look this often whether it did. */
const TICK_MS = 200;
const FIRST_LOOK_MS = 2;
const LONGEST_LOOK_MS = 100;

interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly failed: string | null;
}

export class Ward {
  /** Settles when the command has ended and nothing of it lives. */
  readonly over: Promise<void>;
  readonly #run: number;
  readonly #order: Order;
  readonly #tell: (message: FromWatchdog) => void;
  readonly #deadline: ReceivedDeadline;
  readonly #over = deferred<void>();
  #tree: Tree | undefined;
  #timer: NodeJS.Timeout | undefined;
  #stopped: Stopped = null;
  #warned = false;
  #killed = false;

  constructor(run: number, order: Order, leave: Leave, tell: (message: FromWatchdog) => void) {
    this.over = this.#over.promise;
    this.#run = run;
    this.#order = order;
    this.#tell = tell;
    this.#deadline = new ReceivedDeadline(leave, order.marginMs);
    // The message may have been long on its way.
    if (this.#deadline.remainingMs() <= 0) {
      this.#stopped = "jeopardy";
      this.#report({ code: null, signal: null, failed: null });
    } else this.#start();
  }

  /** Once SIGTERM has been sent for want of a renewal, a late one does not take it back. */
  extend(leave: Leave): void {
    if (!this.#warned) this.#deadline.extend(leave);
    this.#tell({ kind: "heard", run: this.#run });
  }

  /** Passes a signal on to the process group. */
  signal(signal: NodeJS.Signals): void {
    if (this.#tree?.pgid !== undefined) signalGroup(this.#tree.pgid, signal);
  }

  /** Ends it at once, all of it. */
  kill(stopped: "jeopardy" | "lost"): void {
    this.#stopped ??= stopped;
    this.#killed = true;
    if (this.#tree !== undefined) destroy(this.#tree);
  }

  #start(): void {
    const { command, args, env, mark } = this.#order;
    let child: ChildProcess;
    try {
      child = spawn(command, args, { detached: true, stdio: "inherit", env: { ...env } });
    } catch (error) {
      return this.#report({ code: null, signal: null, failed: codeOf(error) });
    }
    if (child.pid === undefined) {
      child.once("error", (error) => this.#report({ code: null, signal: null, failed: codeOf(error) }));
      return;
    }
    // Heard only for signals that could not be sent, which are not sent this way.
    child.on("error", () => {});
    this.#tree = { pgid: child.pid, mark };
    child.once("exit", (code, signal) => void this.#clear({ code, signal, failed: null }));
    this.#tell({ kind: "started", run: this.#run, pid: child.pid });
    this.#watch();
  }

  #watch(): void {
    const left = this.#deadline.remainingMs();
    if (left <= 0) return this.kill("jeopardy");
    const { graceMs } = this.#order;
    if (!this.#warned && left <= graceMs) {
      this.#warned = true;
      this.#stopped ??= "jeopardy";
      this.signal("SIGTERM");
      // One that is stopped would hear it too late.
      this.signal("SIGCONT");
      this.#tell({ kind: "warned", run: this.#run });
    }
    const next = this.#warned ? left : left - graceMs;
    this.#timer = setTimeout(() => this.#watch(), Math.min(Math.max(1, next), TICK_MS));
  }

  /** The command has ended; what it left behind is given the same grace, within the deadline. */
  async #clear(exit: Exit): Promise<void> {
    const tree = this.#tree!;
    const since = process.hrtime.bigint();
    for (let pause = FIRST_LOOK_MS; isAlive(tree); pause = Math.min(2 * pause, LONGEST_LOOK_MS)) {
      if (pause === FIRST_LOOK_MS && !this.#killed) this.signal("SIGTERM");
      const waitedMs = Number(process.hrtime.bigint() - since) / 1e6;
      if (waitedMs >= this.#order.graceMs) this.#killed = true;
      if (this.#killed) destroy(tree);
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
    this.#report(exit);
  }

  #report(exit: Exit): void {
    clearTimeout(this.#timer);
    this.#tree = undefined;
    this.#tell({ kind: "over", run: this.#run, ...exit, stopped: this.#stopped });
    this.#over.resolve();
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown";
}
