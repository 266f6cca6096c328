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
/** Requests per second; those who have just joined the queue make thousands. */
const QUIET = 10;
/** A candidate's key and its card. */
const KEYS_EACH = 2;

interface All {
  readonly event: string;
  readonly wonMs: number;
  readonly heapPerElection: number;
  readonly rssPerElection: number;
}

function holder(server: EtcdServer): { child: ChildProcess; all: Promise<All>; at: () => number } {
  const script = fileURLToPath(new URL("holder.js", import.meta.url));
  const child = spawn(process.execPath, [script, server.endpoints[0]!, String(ELECTIONS)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let at = 0;
  const all = new Promise<All>((resolve) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      const said = JSON.parse(line) as All;
      if (said.event !== "all") return;
      at = performance.now();
      resolve(said);
    });
  });
  return { child, all, at: () => at };
}

/** Keys in the store, by the server's own count. */
async function keys(server: EtcdServer): Promise<number> {
  const page = await (await fetch(`http://${server.endpoints[0]}/metrics`)).text();
  return Number(/^etcd_debugging_mvcc_keys_total (\S+)$/m.exec(page)?.[1] ?? "0");
}

export async function* many(server: EtcdServer): AsyncGenerator<Row> {
  const first = holder(server);
  const won = await first.all;
  const label = ELECTIONS.toLocaleString("en");
  yield {
    what: `${label} elections in one process: time to win all`,
    result: `${(won.wonMs / 1000).toFixed(1)} s`,
  };
  yield {
    what: `${label} elections: memory of each`,
    result: `${(won.heapPerElection / 1024).toFixed(1)} KB of heap, ${(won.rssPerElection / 1024).toFixed(1)} KB of rss`,
    beside: "goal: at most 4 KB",
  };
  const rate = await perSecond(server, 2 * TTL_MS);
  yield {
    what: `${label} elections: requests/s, idle`,
    result: rate.toFixed(2),
    beside: `two per ttl/3 are ${(2 / (TTL_MS / 3000)).toFixed(2)}`,
  };
  const second = holder(server);
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
  await until(async () => (await perSecond(server, 1_000)) < QUIET, 120_000); // each has looked who is before it
  const waiting = await perSecond(server, TTL_MS);
  yield {
    what: `${label} waiting behind them: requests/s of both, idle`,
    result: waiting.toFixed(2),
    beside: "two leases: twice the above",
  };
  const killed = performance.now();
  first.child.kill("SIGKILL");
  await second.all;
  yield {
    what: `${label} elections: leader killed, ttl 10 s: second process leads them all after`,
    result: `${((second.at() - killed - 1_000) / 1000).toFixed(1)} s`,
  };
  second.child.kill("SIGKILL");
  await once(second.child, "exit");
}
