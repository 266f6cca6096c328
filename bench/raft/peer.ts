/** One voter that also stands: says when it leads, by the machine's clock. Run by bench/raft/run.ts, and killed by it. */
import { Election } from "../../src/election/election.js";
import { openBackend } from "../../src/open.js";
import { machineMs } from "../machine-clock.js";

const [url = "", ttl = ""] = process.argv.slice(2);
const backend = await openBackend(url);
const election = new Election({ name: "crash", backend, ttlMs: Number(ttl), closeBackend: true });
election.on("error", () => {}); // another peer is down: that is what is measured
await election.run(async (term) => {
  process.stdout.write(`${machineMs()}\n`);
  await new Promise((resolve) => term.signal.addEventListener("abort", resolve));
});
