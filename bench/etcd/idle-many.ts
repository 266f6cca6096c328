/** Ten thousand elections on one lease: what they cost while nothing happens, and how they end with their lease. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { EtcdServer } from "../../test/support/etcd-server.js";
import type { Row } from "../measure.js";
import { perSecond } from "./idle.js";

const ELECTIONS = Number(process.env["BENCH_ELECTIONS"] ?? 10_000);
const IDLE_MS = 30_000;
const WRITE_EVERY_MS = 100;

interface Said {
  readonly event: "idle" | "busy" | "ready" | "lost";
  readonly cpuPercent: number;
  readonly timers: number;
  readonly rss: number;
  readonly held: number;
  readonly at: number;
  readonly blockMs: number;
}

export async function* idleMany(server: EtcdServer): AsyncGenerator<Row> {
  const script = fileURLToPath(new URL("idle-holder.js", import.meta.url));
  const child = spawn(process.execPath, [script, server.endpoints[0]!, String(ELECTIONS), String(IDLE_MS)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout });
  const heard = (event: Said["event"]): Promise<Said> =>
    new Promise((resolve) => {
      lines.on("line", (line) => {
        const said = JSON.parse(line) as Said;
        if (said.event === event) resolve(said);
      });
    });
  const [idling, working, ready, losing] = [heard("idle"), heard("busy"), heard("ready"), heard("lost")];
  const label = `${ELECTIONS.toLocaleString("en")} elections on one lease`;
  const cost = ({ cpuPercent, timers, rss, held }: Said): string =>
    `${cpuPercent.toFixed(2)} % of a core, ${timers} timers, ${(rss / 1e6).toFixed(0)} MB resident (${held} held)`;
  yield {
    what: `${label}, idle for 30 s, ttl 10 s`,
    result: cost(await idling),
    beside: "goal: 0.5 %, 10 timers, 320 MB",
  };
  const limits = { signal: new AbortController().signal, limitMs: 5_000 };
  const client = server.client();
  const writing = setInterval(
    () => void client.put("elsewhere", "x", undefined, limits).catch(() => {}),
    WRITE_EVERY_MS,
  );
  const rate = await perSecond(server, 20_000);
  yield {
    what: `${label}, somebody else writes ten times a second`,
    result: cost(await working),
    beside: `${rate.toFixed(1)} requests/s, 10 of them those writes`,
  };
  clearInterval(writing);
  await client[Symbol.asyncDispose]();
  await ready;
  const [, lease = ""] = /\n([0-9a-f]+)/.exec(await server.etcdctl("lease", "list")) ?? [];
  const revokedAt = Date.now();
  await server.etcdctl("lease", "revoke", lease);
  const { at, blockMs } = await losing;
  yield {
    what: `${label}: lease revoked, all terms ended after`,
    result: `${at - revokedAt} ms; event loop blocked for at most ${blockMs.toFixed(0)} ms at a time`,
    beside: "goal: 1 s, 50 ms",
  };
  child.kill("SIGKILL");
  await once(child, "exit");
}
