/** A process that leads many elections and does nothing: what that costs it, and what the loss of its lease does to it. */
import { subscribe } from "node:diagnostics_channel";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { etcdBackend } from "../../src/backends/etcd/index.js";
import { Election } from "../../src/election/election.js";

const [endpoint = "", count = "0", idleMs = "30000"] = process.argv.slice(2);
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const say = (event: string, more: object = {}): void =>
  void process.stdout.write(`${JSON.stringify({ event, ...more })}\n`);

const backend = etcdBackend({ endpoints: endpoint, env: {} });
const elections = Array.from(
  { length: Number(count) },
  (_, i) => new Election({ name: `many/${i}`, backend, ttlMs: 10_000 }),
);
const terms = await Promise.all(elections.map((election) => election.campaign()));
await pause(10_000); // every key was read, and what winning took was collected

async function idle(event: string): Promise<void> {
  const [cpu, started] = [process.cpuUsage(), performance.now()];
  await pause(Number(idleMs));
  const { user, system } = process.cpuUsage(cpu);
  say(event, {
    cpuPercent: (user + system) / 10 / (performance.now() - started),
    timers: process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length,
    rss: process.memoryUsage().rss,
    held: terms.filter(({ held }) => held).length,
  });
}

await idle("idle");
await idle("busy"); // the parent writes meanwhile
let ended = 0;
const delay = monitorEventLoopDelay({ resolution: 1 });
subscribe("conclave:ended", () => {
  if (++ended === terms.length) say("lost", { at: Date.now(), blockMs: delay.max / 1e6 });
});
delay.enable();
say("ready");
