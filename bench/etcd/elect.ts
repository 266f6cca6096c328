/**
 * A candidate that behaves as `etcdctl elect` does: says a line when it leads,
 * resigns on SIGINT. Then, unlike etcdctl, it does not end: on SIGUSR2 it stands
 * again. Each line says when that was, by a clock that all processes of the
 * machine share: leading, and when `resign()` was called.
 */
import { etcdBackend } from "../../src/backends/etcd/index.js";
import { Election } from "../../src/election/election.js";
import { machineMs } from "../machine-clock.js";

const [endpoint = "", name = ""] = process.argv.slice(2);
const backend = etcdBackend({ endpoints: endpoint, env: {} });
const election = new Election({ name, backend, closeBackend: true });
let resign = (): void => {};
let stand = (): void => {};
process.on("SIGINT", () => resign());
process.on("SIGUSR2", () => stand());
process.on("SIGTERM", () => void election.close());
try {
  for (;;) {
    const term = await election.campaign();
    const since = machineMs();
    const again = new Promise<void>((resolve) => {
      stand = resolve;
    });
    let calledAt = 0;
    resign = () => {
      calledAt = machineMs();
      void term.resign();
    };
    process.stdout.write(`leads ${since}\n`);
    await term.ended;
    process.stdout.write(`resigned ${calledAt}\n`);
    await again;
  }
} catch {
  // closed
}
