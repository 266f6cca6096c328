/**
 * A process that acquires, renews and releases, and is killed at one call to the
 * file system: arguments are the directory, the number of that call (0: never),
 * and whether before or after it.
 */
import { fileBackend } from "../../../src/backends/file/index.js";
import { interposed } from "../interposed.js";

const [directory = "", at = "0", phase = "before"] = process.argv.slice(2);
let calls = 0;

function dieAt(when: string): () => void {
  return () => {
    if (when === "before") calls++;
    if (when === phase && calls === Number(at)) process.kill(process.pid, "SIGKILL");
  };
}

const signal = new AbortController().signal;
const backend = fileBackend({ directory, fs: interposed(dieAt("before"), dieAt("after")) });
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
await hold.renew({ signal });
await hold.renew({ signal });
await hold.release({ signal });
process.stdout.write(`calls ${calls}\n`);
process.disconnect();
