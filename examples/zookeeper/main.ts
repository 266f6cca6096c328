/**
 * The classic on ZooKeeper: campaign, work while leading, resign on SIGTERM.
 *
 * Needs ZooKeeper: ZOOKEEPER_HOSTS, or localhost:2181. Start it twice, end the
 * first one with Ctrl-C, and the second takes over within milliseconds. A Java
 * program with Curator's `new LeaderLatch(client, "/scheduler", id)` is a
 * candidate of the same election.
 */
import { Election } from "conclave";
import { zookeeperBackend } from "conclave/zookeeper";

await using election = new Election({
  name: "scheduler",
  backend: zookeeperBackend(),
  closeBackend: true,
});

const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());
process.once("SIGINT", () => stop.abort());

election.on("error", ({ error }) =>
  console.log(`trouble: ${error instanceof Error ? error.message : String(error)}`),
);

console.log("campaigning");
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
