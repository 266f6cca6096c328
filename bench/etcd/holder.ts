/** A process that stands in many elections, wins what it can, and says when it has them all. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { etcdBackend } from "../../src/backends/etcd/index.js";
import { Election } from "../../src/core/election.js";

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

const started = performance.now();
let led = 0;
let lastWin = 0;
const elections: Election[] = [];
for (let i = 0; i < Number(count); i++) {
  const election = new Election({ name: `many/${i}`, backend });
  elections.push(election);
  void election.campaign().then(() => {
    lastWin = performance.now();
    if (++led !== elections.length) return;
    const wonMs = lastWin - started;
    setTimeout(() => {
      collect();
      const after = process.memoryUsage();
      const bytes = after.heapUsed + after.external - before.heapUsed - before.external;
      say("all", {
        wonMs,
        heapPerElection: bytes / elections.length,
        rssPerElection: (after.rss - before.rss) / elections.length,
      });
    }, 1_000);
  });
}
say("standing");
