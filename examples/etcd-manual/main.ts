/**
 * By hand: try once; if somebody leads, wait until nobody does and try again;
 * while leading, check before every step. One key under a lease
 * (`layout: "key"`), as hand-written programs do it, so that this one can stand
 * beside them.
 *
 * Needs etcd: ETCD_ENDPOINTS, or localhost:2379.
 */
import { Election, isConclaveError } from "conclave";
import { etcdBackend } from "conclave/etcd";
import type { Term } from "conclave";

await using backend = etcdBackend({ layout: "key" });
const stand = (id: string): Election =>
  new Election({ name: "jobs/nightly", backend, id, value: id, ttlMs: 5_000 });

async function tryThenWait(election: Election): Promise<Term> {
  for (;;) {
    try {
      const term = await election.tryCampaign();
      if (term !== null) return term;
      const leader = await election.leader();
      console.log(`not leading: ${leader?.value ?? "nobody"} leads`);
      for await (const next of election.observe()) if (next === null) break;
    } catch (error) {
      // Neither yes nor no: etcd could not be asked. What does not pass by itself (a wrong password, say) is thrown on.
      if (!isConclaveError(error) || !error.retriable) throw error;
      console.log(`not known: ${error.message}; once more in a second`);
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    }
  }
}

await using first = stand("first");
await using second = stand("second");
const term = await tryThenWait(first);
console.log(`first leads: ${term.held}`);
const waiting = tryThenWait(second);
for (let step = 1; step <= 3; step++) {
  // The lease is kept alive by the library; whether it was in time is for us to ask.
  term.assertHeld();
  await new Promise((resolve) => setTimeout(resolve, 100));
}
await term.resign();
const next = await waiting;
console.log(`second leads: ${next.held}, with a newer token: ${next.token > term.token}`);
await next.resign();
