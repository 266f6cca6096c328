/**
 * The classic: stand, work while leading, resign on SIGTERM.
 *
 * Needs etcd: ETCD_ENDPOINTS, or localhost:2379. Start it twice, end the first
 * one with Ctrl-C, and the second takes over within milliseconds. Instead of a
 * second copy, `etcdctl elect /election/scheduler me` campaigns in the same queue.
 */
import { Election } from "conclave";
import { etcdBackend } from "conclave/etcd";

await using election = new Election({
  name: "/election/scheduler",
  backend: etcdBackend(),
  ttlMs: 5_000,
  closeBackend: true,
});

const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());
process.once("SIGINT", () => stop.abort());

election.on("error", ({ error }) =>
  console.log(`trouble: ${error instanceof Error ? error.message : String(error)}`),
);

console.log("standing");
await election.run(
  async (term) => {
    console.log(`leading with token ${term.token}`);
    while (!term.signal.aborted) {
      // One piece of work. Ask just before an act that must not happen twice.
      term.assertHeld();
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    console.log("work stopped");
  },
  { signal: stop.signal },
);
console.log("resigned");
