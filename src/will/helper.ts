/**
 * The process that outlives this one: a shell that waits until its input ends,
 * which is when every process that holds the other end is dead, and then runs
 * the executor. It is not hit by signals to our process group, and ignores
 * those by which programs are asked to end.
 */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import type { Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { Backoff } from "../kit/backoff.js";
import { systemClock } from "../kit/clock.js";
import type { Timer } from "../seam/clock.js";

/** A shell that starts Node when it is needed, or a Node process that is there already: faster, for 45 MB. */
export type HelperKind = "lazy" | "resident";

const EXECUTOR = fileURLToPath(new URL("../executor/main.js", import.meta.url));
/** A line is the word that nothing is left to do. Reading stops at the end of the input, or at that word. */
const SCRIPT = `trap '' HUP INT TERM QUIT TSTP
while IFS= read -r line; do [ "$line" = bye ] && exit 0; done
exec "$0" "$1" "$2"`;
const FIRST_RESTART_MS = 100;
const LONGEST_RESTART_MS = 30_000;

export interface HelperEvents {
  /** It died, or could not be started. Another one follows. */
  lost(why: string): void;
  /** One lives: what is in the will is executed from now on. */
  started(): void;
}

export class Helper {
  readonly #kind: HelperKind;
  readonly #will: string;
  readonly #events: HelperEvents;
  readonly #backoff = new Backoff(systemClock, FIRST_RESTART_MS, LONGEST_RESTART_MS);
  #child: ChildProcess | undefined;
  #again: Timer | undefined;
  #closed = false;
  /** How many have died. */
  lost = 0;

  constructor(kind: HelperKind, will: string, events: HelperEvents) {
    this.#kind = kind;
    this.#will = will;
    this.#events = events;
    this.#start();
  }

  /** `undefined`: none lives at the moment. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** The end of the pipe that acting processes hold. */
  get pipe(): Socket | undefined {
    return (this.#child?.stdin as Socket | null | undefined) ?? undefined;
  }

  /** Nothing is left to be done after our death. */
  close(): void {
    this.#closed = true;
    this.#again?.cancel();
    this.#child?.stdin?.end("bye\n");
  }

  #start(): void {
    const [file, args] =
      this.#kind === "resident"
        ? [process.execPath, [EXECUTOR, this.#will]]
        : ["/bin/sh", ["-c", SCRIPT, process.execPath, EXECUTOR, this.#will]];
    // Credentials that come from the environment are needed again. Only this user and root can read it there.
    const child = spawn(file, args, { detached: true, stdio: ["pipe", "ignore", "ignore"] });
    this.#child = child;
    child.stdin.on("error", () => {}); // it was killed; its exit says so
    child.once("error", (error) => {
      if (child.pid === undefined) this.#gone(child, error.message);
    });
    child.once("exit", (code, signal) => this.#gone(child, `it ended with ${signal ?? code}`));
    child.unref();
    (child.stdin as Socket).unref();
    if (child.pid !== undefined) this.#events.started();
  }

  #gone(child: ChildProcess, why: string): void {
    if (this.#child !== child) return;
    this.#child = undefined;
    child.stdin?.destroy();
    if (this.#closed) return;
    this.lost++;
    this.#events.lost(why);
    this.#again = systemClock.after(this.#backoff.next(), () => this.#start());
  }
}
