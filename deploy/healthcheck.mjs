/**
 * The image's HEALTHCHECK: is the `conclave` of this container alive?
 * 0: it runs, is not stopped, and, if it listens, `/healthz` answers 200. 1: it does not; the reason is on stdout.
 */
import { readdirSync, readFileSync } from "node:fs";

const MAIN = "/dist/cli/main.js";
const LISTEN = "127.0.0.1:4040";
const TIMEOUT_MS = 3_000;

/** Process 1, or the child of tini: the oldest process that runs the command line. */
function find() {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  for (const pid of pids.sort((a, b) => Number(a) - Number(b))) {
    try {
      const words = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").slice(0, -1);
      const main = words.findIndex((word) => word.endsWith(MAIN));
      if (main !== 1) continue; // `tini -- node …` has it too, but not as the script of Node
      // The name of the program is in brackets and may hold anything.
      const state = readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\) /s, "")[0];
      return { args: words.slice(main + 1), state };
    } catch {
      // It has ended since it was listed.
    }
  }
  return undefined;
}

/** What a flag was given, in either way to write it; only before `--`, where the words of another command begin. */
function flag(args, name) {
  const end = args.indexOf("--");
  const own = end === -1 ? args : args.slice(0, end);
  const at = own.findIndex((word) => word === name || word.startsWith(`${name}=`));
  if (at === -1) return undefined;
  return own[at] === name ? own[at + 1] : own[at].slice(name.length + 1);
}

/** Where it listens: `serve` always does, the others with `--metrics`. */
function address(args) {
  const given = args[0] === "serve" ? (flag(args, "--listen") ?? LISTEN) : flag(args, "--metrics");
  if (given === undefined) return undefined;
  const [, host, port] = /^(?:(.*):)?(\d+)$/.exec(given) ?? [];
  // What listens everywhere listens here.
  const here = host === undefined || host === "0.0.0.0" || host === "[::]" ? "127.0.0.1" : host;
  return `http://${here}:${port}/healthz`;
}

async function complaint() {
  const found = find();
  if (found === undefined) return "conclave does not run";
  if (found.state === "T" || found.state === "t") return "conclave is stopped";
  if (found.state === "Z" || found.state === "X") return "conclave has ended";
  const url = address(found.args);
  if (url === undefined) return undefined;
  try {
    const { status } = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    return status === 200 ? undefined : `${url} answers ${status}`;
  } catch (error) {
    return `${url} does not answer: ${String(error.cause?.message ?? error.message)}`;
  }
}

const wrong = await complaint();
if (wrong !== undefined) process.stdout.write(`${wrong}\n`);
process.exitCode = wrong === undefined ? 0 : 1;
