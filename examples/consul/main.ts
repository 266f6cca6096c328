/**
 * The classic on Consul: stand, work while leading, resign on SIGTERM.
 *
 * Needs a Consul agent: CONSUL_HTTP_ADDR, or 127.0.0.1:8500. Start it twice, end
 * the first one with Ctrl-C, and the second takes over within milliseconds.
 * Instead of a second copy, `consul lock example/scheduler sleep 60` stands in
 * the same election.
 */
import { Election } from "conclave";
import { consulBackend } from "conclave/consul";

await using election = new Election({
  name: "scheduler",
  backend: consulBackend({ prefix: "example" }),
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
