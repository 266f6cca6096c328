/** A process that takes and gives back locks of different names, so many at a time, and says how many a second that were. */
import { etcdBackend } from "../../src/backends/etcd/index.js";
import { Lock } from "../../src/lock/lock.js";

const [endpoint = "", width = "1", seconds = "3"] = process.argv.slice(2);
const backend = etcdBackend({ endpoints: endpoint, env: {} });
const locks = Array.from({ length: Number(width) }, (_, i) => new Lock({ name: `lane-${i}`, backend }));
const [started, cpu] = [performance.now(), process.cpuUsage()];
const until = started + Number(seconds) * 1000;
let done = 0;
await Promise.all(
  locks.map(async (lock) => {
    while (performance.now() < until) {
      await lock.acquire();
      await lock.release();
      done++;
    }
  }),
);
const { user, system } = process.cpuUsage(cpu);
const elapsed = (performance.now() - started) / 1000;
process.stdout.write(
  `${JSON.stringify({ event: "cycles", perSecond: done / elapsed, cpuUsEach: (user + system) / done })}\n`,
);
await Promise.all(locks.map((lock) => lock.close()));
await backend[Symbol.asyncDispose]();
