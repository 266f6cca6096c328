/**
 * A process that acquires, renews and releases, and is killed at one call to the
 * file system: arguments are the directory, the number of that call (0: never),
 * and whether before or after it.
 */
import { fileBackend } from "../../../src/backends/file/index.js";
import { interposed } from "../interposed.js";

const [directory = "", at = "0", phase = "before"] = process.argv.slice(2);
let [began, ended] = [0, 0];

/** After that many calls have begun, or have ended: two may be under way at once. */
function dieAt(when: string, calls: number): void {
  if (when === phase && calls === Number(at)) process.kill(process.pid, "SIGKILL");
}

const fs = interposed(
  () => dieAt("before", ++began),
  () => dieAt("after", ++ended),
);

/** Old records are removed while nobody waits for it: the number of calls is the same in every run if nothing overlaps. */
async function rest(): Promise<void> {
  const idle = (): boolean => began === ended;
  do await new Promise((resolve) => setImmediate(resolve));
  while (!idle());
}

const signal = new AbortController().signal;
const backend = fileBackend({ directory, fs });
const candidacy = {
  election: "a",
  candidate: `victim-${process.pid}`,
  value: "",
  ttlMs: 1000,
  retryMs: 200,
  attemptMs: 10_000,
};
const hold = await backend.campaign(candidacy, { wait: false, signal });
if (hold === null) throw new Error("someone else leads");
process.stdout.write(`token ${hold.token}\n`);
await rest();
await hold.renew({ signal });
await rest();
await hold.renew({ signal });
await rest();
await hold.release({ signal });
await rest();
await backend[Symbol.asyncDispose]();
process.stdout.write(`calls ${began}\n`);
process.disconnect();
