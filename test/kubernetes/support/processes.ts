/** Stops the API server like a crash and starts it again as it was. */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { apiCall } from "./api.js";
import type { Server } from "./server.js";

export class ApiServerProcess {
  #pid: number;
  readonly #argv: readonly string[];
  readonly #admin: string;
  readonly #original: number;

  /** Only where /proc tells how it was started. */
  static of(server: Server): ApiServerProcess | undefined {
    if (server.pids === undefined || process.platform !== "linux") return undefined;
    return new ApiServerProcess(server.pids.apiserver, server.admin);
  }

  private constructor(pid: number, admin: string) {
    this.#pid = pid;
    this.#original = pid;
    this.#argv = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").slice(0, -1);
    this.#admin = admin;
  }

  freeze(): void {
    process.kill(this.#pid, "SIGSTOP");
  }

  thaw(): void {
    process.kill(this.#pid, "SIGCONT");
  }

  async kill(): Promise<void> {
    process.kill(this.#pid, "SIGKILL");
    while (alive(this.#pid)) await pause(20);
  }

  /** Resolves when it answers again. */
  async start(): Promise<void> {
    const child = spawn(this.#argv[0] ?? "", this.#argv.slice(1), { stdio: "ignore", detached: true });
    child.unref();
    this.#pid = child.pid ?? 0;
    for (let i = 0; i < 600; i++) {
      const ready = await apiCall(this.#admin, "GET", "/readyz").catch(() => undefined);
      if (ready?.body === "ok") return;
      await pause(50);
    }
    throw new Error("the API server did not come back");
  }

  /** Ends what `start` started: the test helper only knows the first process. */
  async end(): Promise<void> {
    if (this.#pid !== this.#original && alive(this.#pid)) await this.kill();
  }
}

function alive(pid: number): boolean {
  try {
    // A zombie is dead: it only waits for its parent to notice.
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}
