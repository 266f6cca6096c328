/**
 * A rolling restart of three replicas in which leadership moves once: the leader
 * is restarted last, and names a replica that has been restarted already. With a
 * plain resign it could go to one that is restarted next, and move again.
 *
 * The store is a directory of this run, for one machine: pasted onto five, this
 * runs five times, each by itself. Replicas of yours name a store that all of
 * them reach, and are processes: each does its part of this on SIGTERM.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { openElection } from "conclave";
import type { Election, Term } from "conclave";

const directory = await mkdtemp(join(tmpdir(), "conclave-example-"));
const backend = pathToFileURL(directory).href; // one machine
const leaders: string[] = [];

/** A replica that campaigns until it is closed. With a roster a transfer to a name that nobody has is refused. */
async function start(id: string, version: number): Promise<Election> {
  const election = await openElection({
    name: "mailer",
    id,
    backend,
    ttlMs: 2_000,
    retryMs: 200,
    roster: true,
  });
  election.on("elected", () => leaders.push(`${id}, version ${version}`));
  void election.run(work);
  return election;
}

/** Goes on for as long as this replica leads. */
async function work(term: Term): Promise<void> {
  if (term.signal.aborted) return;
  await new Promise((resolve) => term.signal.addEventListener("abort", resolve, { once: true }));
}

async function restart(election: Election, id: string): Promise<Election> {
  await election.close();
  console.log(`${id} restarted`);
  return start(id, 2);
}

/** Until so many terms have begun, and this many candidates stand. */
async function settled(election: Election, terms: number, standing: number): Promise<void> {
  while (leaders.length < terms || (await election.candidates()).length < standing)
    await new Promise((resolve) => setTimeout(resolve, 50));
}

let first = await start("web-1", 1);
await settled(first, 1, 1);
let second = await start("web-2", 1);
let third = await start("web-3", 1);
await settled(first, 1, 3);
console.log(`${leaders[0]}, leads`);

second = await restart(second, "web-2");
third = await restart(third, "web-3");
await settled(first, 1, 3);

const result = await first.transfer("web-2");
console.log(`web-1 hands over to web-2: ${result}`);
await settled(second, 2, 3);
console.log(`${leaders[1]}, leads`);
first = await restart(first, "web-1");
await settled(second, 2, 3);
console.log(`leadership moved ${leaders.length - 1} time, in a restart of 3 replicas`);

await Promise.all([first, second, third].map((election) => election.close()));
await rm(directory, { recursive: true });
