/** A process that campaigns in many elections, wins what it can, and says when it has them all. */
import { subscribe } from "node:diagnostics_channel";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { etcdBackend } from "../../src/backends/etcd/index.js";
import { Election } from "../../src/election/election.js";

const [endpoint = "", count = "0"] = process.argv.slice(2);
setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;
const say = (event: string, more: object = {}): void =>
  void process.stdout.write(`${JSON.stringify({ event, ...more })}\n`);

const backend = etcdBackend({ endpoints: endpoint, env: {} });
const warm = new Election({ name: `warm-${process.pid}`, backend });
await (await warm.campaign()).resign();
collect();
const before = process.memoryUsage();

const elections: Election[] = [];

/** Heap of one election. Renewals come and go: the median of several looks over two rounds of them. */
async function memory(): Promise<{ heapPerElection: number; rssPerElection: number }> {
  const looks: number[] = [];
  for (let i = 0; i < 13; i++) {
    await new Promise((resolve) => setTimeout(resolve, 500));
    collect();
    const { heapUsed, external } = process.memoryUsage();
    looks.push((heapUsed + external - before.heapUsed - before.external) / elections.length);
  }
  const heapPerElection = looks.toSorted((a, b) => a - b)[6]!;
  return { heapPerElection, rssPerElection: (process.memoryUsage().rss - before.rss) / elections.length };
}

subscribe("conclave:ended", () => say("lost"));
const started = performance.now();
let led = 0;
for (let i = 0; i < Number(count); i++) {
  const election = new Election({ name: `many/${i}`, backend });
  elections.push(election);
  void election.campaign().then(async () => {
    if (++led !== elections.length) return;
    say("all", { wonMs: performance.now() - started });
    say("memory", await memory());
  });
}
say("standing");
