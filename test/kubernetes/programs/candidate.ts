/**
 * One candidate of ours in a process of its own, to be killed and stopped:
 *   candidate.js '{"kubeconfig": …, "name": …, "ttlMs": …, …}'
 * One JSON line per event, like the Go peer's. SIGTERM resigns and ends it. A
 * line `held` tells the first and last instant at which `held` was seen true:
 * it is looked at every 2 ms, by the wall clock that all processes here share.
 */
import { kubernetesBackend } from "../../../src/backends/kubernetes/index.js";
import { Election } from "../../../src/election/election.js";
import { untilStopped } from "../support/overlap.js";

const { kubeconfig, name, id, candidates = 1, ...timing } = JSON.parse(process.argv[2] ?? "{}");
const say = (line: Record<string, unknown>): void =>
  void process.stdout.write(`${JSON.stringify({ ts: wall(), ...line })}\n`);
/** Wall-clock milliseconds with their fraction: the process is young, so the two clocks have not drifted apart. */
const wall = (): number => performance.timeOrigin + performance.now();

const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());

async function stand(index: number): Promise<void> {
  const backend = await kubernetesBackend({ kubeconfig });
  const election = new Election({
    name,
    backend,
    id: candidates > 1 ? `${id}-${index}` : id,
    ...timing,
    closeBackend: true,
  });
  let first: number | undefined;
  let last = 0;
  let token = "";
  const look = (): void => {
    if (election.leading) {
      last = wall();
      first ??= last;
    } else if (first !== undefined) {
      say({ event: "held", id: election.candidate, first, last, token });
      first = undefined;
    }
  };
  election.on("elected", ({ term }) => {
    token = term.token.toString();
    say({ event: "started_leading", id: election.candidate, token });
    look();
  });
  election.on("ended", ({ end }) =>
    say({ event: "stopped_leading", id: election.candidate, reason: end.reason }),
  );
  election.on("error", ({ error }) =>
    say({ event: "error", id: election.candidate, message: String(error) }),
  );
  const timer = setInterval(look, 2);
  say({ event: "starting", id: election.candidate });
  await election.run(untilStopped, { signal: stop.signal });
  look();
  clearInterval(timer);
  await election.close();
}

await Promise.all(Array.from({ length: candidates }, (_, index) => stand(index)));
say({ event: "exit" });
