/** A process that races for elections it is told of, all at once, and says which it won. */
import { fileBackend } from "../../../src/backends/file/index.js";

const [directory = ""] = process.argv.slice(2);
const backend = fileBackend({ directory, deadProcessRule: false });
let round = new AbortController();

async function race(election: string, signal: AbortSignal): Promise<void> {
  const candidacy = {
    election,
    candidate: `racer-${process.pid}-${election}`,
    value: "",
    ttlMs: 60_000,
    retryMs: 100,
    attemptMs: 10_000,
  };
  try {
    const hold = await backend.campaign(candidacy, { wait: true, signal });
    process.send?.({ won: election, token: hold?.token.toString() });
  } catch (error) {
    if (!signal.aborted) process.send?.({ failed: election, error: String(error) });
  }
}

process.on("message", (message: { race?: string[]; stop?: true }) => {
  if (message.stop) {
    round.abort();
    round = new AbortController();
    process.send?.({ stopped: true });
  }
  for (const election of message.race ?? []) void race(election, round.signal);
});
process.send?.({ ready: true });
