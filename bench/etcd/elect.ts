/**
 * A candidate that behaves as `etcdctl elect` does: says a line when it leads,
 * resigns on SIGINT. Then, unlike etcdctl, it stands again instead of ending.
 */
import { etcdBackend } from "../../src/backends/etcd/index.js";
import { Election } from "../../src/core/election.js";

const [endpoint = "", name = ""] = process.argv.slice(2);
const backend = etcdBackend({ endpoints: endpoint, env: {} });
const election = new Election({ name, backend, closeBackend: true });
let told = (): void => {};
process.on("SIGINT", () => told());
process.on("SIGTERM", () => void election.close());
try {
  for (;;) {
    const term = await election.campaign();
    const resign = new Promise<void>((resolve) => {
      told = resolve;
    });
    process.stdout.write(`leads ${term.token}\n`);
    await Promise.race([resign, term.ended]);
    await term.resign();
  }
} catch {
  // closed
}
