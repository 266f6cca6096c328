/**
 * A leader is killed, and the next one leads at once although the ttl is a
 * minute: the helper of the killed process gives its leadership back.
 *
 * The program starts itself again as the leader that is killed.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { openElection } from "conclave";

const [, , store] = process.argv;
if (store === undefined) await watch();
else await lead(store);

/** The leader: works until it is killed. */
async function lead(backend: string): Promise<void> {
  // Off by default: a program that starts others to work for it hands them lastWill.stdio first.
  const election = await openElection({ name: "jobs", id: "first", backend, ttlMs: 60_000, lastWill: true });
  await election.campaign();
  process.send?.("elected");
  setInterval(() => {}, 1_000);
}

async function watch(): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), "conclave-example-"));
  const backend = pathToFileURL(directory).href;
  const leader = fork(fileURLToPath(import.meta.url), [backend]);
  await once(leader, "message");
  const election = await openElection({ name: "jobs", id: "second", backend, ttlMs: 60_000 });
  console.log(`${(await election.leader())?.candidate} leads`);
  const campaign = election.campaign();
  leader.kill("SIGKILL");
  const killedAt = performance.now();
  const term = await campaign;
  const soon = performance.now() - killedAt < 30_000;
  console.log(
    `${term.candidate} leads with a higher token, ${soon ? "long before" : "after"} the ttl of 60 s`,
  );
  await election.close();
  await rm(directory, { recursive: true });
}
