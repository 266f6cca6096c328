/**
 * The third line: a small shell, started by the watchdog, that ends the commands
 * if wrapper and watchdog are both killed (its input ends) or both stopped (no
 * new deadline comes in time). It knows cgroups and process groups, and looks for
 * nothing else.
 */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";

/**
 * Each line of input replaces the one before: seconds, then what to end when they have passed. A line without
 * targets disarms it. Targets with a slash are cgroups, others process groups.
 */
const SCRIPT = `
set -f
trap '' HUP INT QUIT TERM TSTP
fire() {
  for target; do
    case $target in
      */*) echo 1 >"$target/cgroup.kill" ;;
      *) kill -s KILL -- "-$target" ;;
    esac
  done
}
disarm() {
  [ -n "$timer" ] || return 0
  kill -s USR1 "$timer"
  kill -s CONT "$timer"
  wait "$timer"
  timer=
}
timer= armed=
while read -r seconds targets; do
  armed=$targets
  disarm
  [ -n "$armed" ] || continue
  {
    trap 'kill -s KILL "$pause"; exit' USR1
    sleep "$seconds" & pause=$!
    wait "$pause"
    fire $armed
  } &
  timer=$!
done
disarm
fire $armed
`;

/** One that does not live this long is not started again: this machine's shell cannot run it. */
const SHORTEST_LIFE_MS = 1_000;

/** Deadlines this close are the same one, computed twice. */
const SAME_MS = 2;
const MOST_TARGETS = 1_000;

/** What must be dead `leftMs` from now. */
export interface Charge {
  readonly leftMs: number;
  readonly targets: readonly string[];
}

export class Backstop {
  #child: ChildProcess | undefined;
  #closed = false;
  #line = "0";
  #targets = "";
  #deadline = 0;

  constructor() {
    this.#start();
  }

  /** `undefined`: it could not be started. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Everything that it is responsible for from now on. All belong to one term: the earliest deadline is that of all. */
  arm(charges: readonly Charge[]): void {
    const targets = charges
      .flatMap((charge) => charge.targets)
      .filter((target) => !/\s/.test(target))
      .slice(0, MOST_TARGETS)
      .join(" ");
    const leftMs = Math.max(0, Math.min(...charges.map((charge) => charge.leftMs)));
    const deadline = performance.now() + leftMs;
    if (targets === this.#targets && Math.abs(deadline - this.#deadline) < SAME_MS) return;
    this.#targets = targets;
    this.#deadline = deadline;
    this.#line = targets === "" ? "0" : `${(leftMs / 1_000).toFixed(3)} ${targets}`;
    this.#tell();
  }

  /** Disarmed: nothing lives any more. */
  close(): void {
    this.#closed = true;
    this.arm([]);
    this.#child?.stdin?.end();
  }

  #start(): void {
    const child = spawn("/bin/sh", ["-c", SCRIPT], {
      // A session of its own: a signal to the watchdog's group is not for it.
      detached: true,
      stdio: ["pipe", "ignore", "ignore"],
      env: { PATH: process.env["PATH"] ?? "/usr/bin:/bin" },
    });
    this.#child = child;
    child.on("error", () => {});
    // Broken when it was killed; a new one gets the whole list.
    child.stdin.on("error", () => {});
    const since = performance.now();
    child.once("exit", () => {
      this.#child = undefined;
      if (!this.#closed && performance.now() - since > SHORTEST_LIFE_MS) this.#start();
    });
    // The watchdog lives as long as the commands and the wrapper do, not as long as this.
    child.unref();
    this.#tell();
  }

  #tell(): void {
    this.#child?.stdin?.write(`${this.#line}\n`);
  }
}
