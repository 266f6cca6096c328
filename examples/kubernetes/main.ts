/**
 * An operator's loop, in the shape client-go users know: started leading,
 * stopped leading, new leader. In a pod or with KUBECONFIG set it stands on a
 * Lease; elsewhere it runs on memory, so that it can be tried anywhere.
 */
import type { Term } from "conclave";
import { Election, memoryBackend } from "conclave";
import { kubernetesBackend } from "conclave/kubernetes";

const inKubernetes =
  process.env["KUBERNETES_SERVICE_HOST"] !== undefined || process.env["KUBECONFIG"] !== undefined;
const backend = inKubernetes ? await kubernetesBackend() : memoryBackend();
const election = new Election({
  name: process.env["ELECTION"] ?? "operator",
  backend,
  id: "operator-1",
  closeBackend: true,
});

// OnNewLeader: who leads, ourselves included.
const known = new Promise<void>((resolve) => {
  election.on("leader", ({ leader }) => {
    if (leader === null) return;
    console.log(`new leader: ${leader.candidate === election.candidate ? "myself" : leader.candidate}`);
    resolve();
  });
});
// OnStoppedLeading: after the work has stopped, whatever ended the term.
const stopped = new Promise<void>((resolve) => {
  election.on("ended", ({ end }) => {
    console.log(`stopped leading: ${end.reason}`);
    resolve();
  });
});

/** One round of the operator's work: look, compare, write, and stop at once when told to. */
async function reconcile(term: Term, round: number): Promise<void> {
  // Read the clock at the last moment before every write; hand the token to whatever can check it.
  term.assertHeld();
  console.log(`reconcile ${round}, with a token: ${term.token > 0n}`);
  await new Promise<void>((resolve) => setTimeout(resolve, 100));
}

const stop = new AbortController();
// A program's own SIGTERM would do the same: process.once("SIGTERM", () => stop.abort());
await election.run(
  async (term) => {
    // OnStartedLeading: runs while this candidate leads, and must end soon after term.signal aborts.
    await known; // only so that this example always prints in the same order
    console.log("started leading");
    for (let round = 1; !term.signal.aborted; round++) {
      await reconcile(term, round);
      if (round === 3) stop.abort();
    }
  },
  { signal: stop.signal },
);
await stopped;
await election.close();
