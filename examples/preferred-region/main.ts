/**
 * Two regions, one of which is preferred: it leads whenever it is there, and the
 * other one leads while it is away. A candidate that comes back takes nothing by
 * force: the leader hands over once it has led for `minTermMs`, so a preferred
 * candidate that restarts every few seconds does not make leadership flap.
 *
 * The store is a directory of this run, for one machine: pasted onto five, this
 * runs five times, each by itself. Regions of yours name a store that both reach.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { openElection } from "conclave";
import type { Election, Term } from "conclave";

const MIN_TERM_MS = 1_000;
const directory = await mkdtemp(join(tmpdir(), "conclave-example-"));
const backend = pathToFileURL(directory).href; // one machine

async function start(region: string, priority: number): Promise<Election> {
  const timing = { ttlMs: 1_000, retryMs: 100, minTermMs: MIN_TERM_MS };
  const election = await openElection({ name: "mailer", id: region, backend, priority, ...timing });
  void election.run(work);
  return election;
}

/** Goes on for as long as this region leads. */
async function work(term: Term): Promise<void> {
  if (term.signal.aborted) return;
  await new Promise((resolve) => term.signal.addEventListener("abort", resolve, { once: true }));
}

/** Until this region leads; how long that took. */
async function leads(region: Election): Promise<number> {
  const since = performance.now();
  for await (const leader of region.observe()) if (leader?.candidate === region.candidate) break;
  return performance.now() - since;
}

const america = await start("america", 0);
await leads(america);
console.log("america leads: nobody else is there");

let europe = await start("europe", 10);
await leads(europe);
console.log("europe leads: it is preferred, and america has handed over");

await europe.close();
await leads(america);
console.log("america leads: europe is away");

europe = await start("europe", 10);
const tookMs = await leads(europe);
console.log(
  `europe leads again, after america has led for ${tookMs >= MIN_TERM_MS ? "its least time" : "too short"}`,
);

const leader = await europe.leader();
for (const { candidate, priority } of await europe.candidates()) {
  const does = candidate === leader?.candidate ? "leads" : "waits";
  console.log(`${candidate.replace(/-[0-9a-f]+$/, "")}: priority ${priority}, ${does}`);
}
await Promise.all([america, europe].map((election) => election.close()));
await rm(directory, { recursive: true });
