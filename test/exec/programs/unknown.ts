/**
 * Run by a user who is not root: a daemon that this user may not examine, known by its environment only. Says what a
 * tracker knows of it, again after an attempt to kill it, its name, and what is known when it has ended.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { MARK_VARIABLE } from "../../../src/exec/procfs.js";
import { ProcessTracker } from "../../../src/exec/tracker.js";
import type { State } from "../../../src/exec/tracker.js";

const SCRIPT = `use POSIX qw(setsid uname _exit);
  fork and sleep 1 and _exit(0);
  setsid;
  syscall((uname())[4] eq 'x86_64' ? 157 : 167, 4, 0) == 0 or _exit(1);
  sleep 20;`;

const tracker = new ProcessTracker({ mark: "mark", limit: undefined });
const child = spawn("perl", ["-e", SCRIPT], { env: { ...process.env, [MARK_VARIABLE]: "mark" } });
// Nothing is looked at before it is an orphan: its parent cannot tell on it.
await once(child, "exit");
const before = await settled();
tracker.kill(20);
const after = await settled();
const [pid, name] = tracker.unknowns()[0]?.split(/[ ()]+/) ?? [];
if (pid !== undefined) process.kill(Number(pid), "SIGKILL");
while (tracker.state() !== "gone") await new Promise((resolve) => setTimeout(resolve, 5));
process.stdout.write(`${before} ${after} ${name} gone\n`);

/** "alive" is also said by a tracker that a busy host gives no time to make sure. */
async function settled(): Promise<State> {
  for (let tries = 0; ; tries++) {
    const state = tracker.state();
    if (state !== "alive" || tries > 200) return state;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
