/** Ten thousand elections in one process; then a second process takes them all over. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { EtcdServer } from "../../test/support/etcd-server.js";
import { until } from "../../test/support/until.js";
import type { Row } from "../measure.js";
import { perSecond } from "./idle.js";

const ELECTIONS = Number(process.env["BENCH_ELECTIONS"] ?? 10_000);
const TTL_MS = 10_000;
/** A renewal after a write: a keep-alive, and all keys read, 120 in a transaction; those who wait also read the key before theirs. */
const renewals = (keysEach: number): number =>
  (1 + Math.ceil((keysEach * ELECTIONS) / 120)) / (TTL_MS / 3000);
/** Requests per second of both; those who have just joined the queue make thousands. */
const QUIET = 1.2 * (renewals(1) + renewals(2)) + 10;
/** A candidate's key and its identity key. */
const KEYS_EACH = 2;

interface Said {
  readonly event: "standing" | "all" | "memory" | "lost";
  readonly wonMs: number;
  readonly heapPerElection: number;
  readonly rssPerElection: number;
}

interface Holder {
  readonly child: ChildProcess;
  /** When it said so, and what. */
  heard(event: Said["event"]): Promise<Said & { readonly at: number }>;
  /** Terms it lost. */
  readonly lost: () => number;
}

function holder(server: EtcdServer): Holder {
  const script = fileURLToPath(new URL("holder.js", import.meta.url));
  const child = spawn(process.execPath, [script, server.endpoints[0]!, String(ELECTIONS)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let lost = 0;
  const lines = createInterface({ input: child.stdout });
  lines.on("line", (line) => {
    if ((JSON.parse(line) as Said).event === "lost") lost++;
  });
  const heard = (event: Said["event"]): Promise<Said & { at: number }> =>
    new Promise((resolve) => {
      lines.on("line", (line) => {
        const said = JSON.parse(line) as Said;
        if (said.event === event) resolve({ ...said, at: performance.now() });
      });
    });
  return { child, heard, lost: () => lost };
}

/** Keys in the store, by the server's own count. */
async function keys(server: EtcdServer): Promise<number> {
  const page = await (await fetch(`http://${server.endpoints[0]}/metrics`)).text();
  return Number(/^etcd_debugging_mvcc_keys_total (\S+)$/m.exec(page)?.[1] ?? "0");
}

export async function* many(server: EtcdServer): AsyncGenerator<Row> {
  const first = holder(server);
  const [winning, weighing] = [first.heard("all"), first.heard("memory")];
  const won = await winning;
  const label = ELECTIONS.toLocaleString("en");
  yield {
    what: `${label} elections in one process: time to win all`,
    result: `${(won.wonMs / 1000).toFixed(1)} s`,
  };
  const { heapPerElection, rssPerElection } = await weighing;
  yield {
    what: `${label} elections: memory of each`,
    result: `${(heapPerElection / 1024).toFixed(1)} KB of heap, ${(rssPerElection / 1024).toFixed(1)} KB of rss`,
    beside: "goal: at most 4 KB",
  };
  const rate = await perSecond(server, 2 * TTL_MS);
  yield {
    what: `${label} elections: requests/s, idle`,
    result: rate.toFixed(2),
    beside: `two per ttl/3 are ${(2 / (TTL_MS / 3000)).toFixed(2)}; with writers beside us up to ${renewals(1).toFixed(2)}`,
  };
  const second = holder(server);
  const taking = second.heard("all");
  const entered = performance.now();
  await until(async () => {
    // Asked seldom and of the server's own count: a list of all the keys would be the greater load.
    await new Promise((resolve) => setTimeout(resolve, 500));
    return (await keys(server)) >= 2 * KEYS_EACH * ELECTIONS;
  }, 300_000);
  yield {
    what: `${label} elections: a second process stands behind all of them after`,
    result: `${((performance.now() - entered) / 1000).toFixed(1)} s`,
  };
  await until(async () => (await perSecond(server, TTL_MS / 3)) < QUIET, 120_000); // each has looked who is before it
  const waiting = await perSecond(server, TTL_MS);
  yield {
    what: `${label} waiting behind them: requests/s of both, idle`,
    result: waiting.toFixed(2),
    beside: `those who wait read two keys each: ${(renewals(1) + renewals(2)).toFixed(2)}`,
  };
  if (first.lost() > 0) {
    yield {
      what: `${label} elections: terms the first process lost before it was killed`,
      result: String(first.lost()),
      beside: "this machine is too slow or too busy for so many",
    };
  }
  const killed = performance.now();
  first.child.kill("SIGKILL");
  const { at } = await taking;
  yield {
    what: `${label} elections: leader killed, ttl 10 s: second process leads them all after`,
    result: `${((at - killed) / 1000).toFixed(1)} s`,
  };
  second.child.kill("SIGKILL");
  await once(second.child, "exit");
}
