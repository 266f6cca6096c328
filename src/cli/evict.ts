/** An operator ends the term of a leader that hangs, or of one that is dead. */
import type { Command } from "commander";
import type { Backend, Claim, Leader } from "../seam/backend.js";
import { Election } from "../election/election.js";
import { systemClock } from "../kit/clock.js";
import { isHeir } from "../kit/heir.js";
import { bounded } from "../kit/wait.js";
import { formatDuration } from "../terminal/duration.js";
import { EXIT, UsageError } from "../terminal/failure.js";
import { output } from "../terminal/output.js";
import { standees } from "./controls.js";
import { stopOnSignals } from "./signals.js";
import { addStoreOptions, openStore } from "./store.js";
import type { StoreOptions } from "./store.js";

interface EvictOptions extends StoreOptions {
  readonly candidate?: string;
  readonly dead?: boolean;
  readonly json?: boolean;
}

/** Longest that ending the term may take. */
const LIMIT_MS = 10_000;

const HELP = `
Examples:
  $ conclave evict nightly-bill                                    whoever leads now
  $ conclave evict nightly-bill --candidate web-1-5f0c7a1b29d4e863   only if this one leads
  $ conclave evict nightly-bill --candidate web-1-5f0c7a1b29d4e863 --dead

The leader cannot renew any more. It stops when it finds that out, at the latest when its lease ends; nobody else leads
before that. A leader that works well campaigns again: stop its process, or it may be elected again.
With --dead leadership is free at once. Say it only if the process is gone for certain (its machine is off, its
container is deleted): one that is merely paused or cut off wakes up and leads beside its successor.
Stores with sessions (etcd, ZooKeeper, Consul, Raft peers) take --dead only.

Exit codes: 0 evicted; 1 nobody leads, or another candidate; 2 bad usage, or this store needs --dead;
3 the store could not be asked: whether it was done is not known, run it again; 4 any other fault.`;

export function addEvict(program: Command, done: (code: number) => void): void {
  const command = program
    .command("evict")
    .summary("end the term of a leader that hangs or is dead")
    .description("Ends the present term: the leader cannot renew, and successors wait until it has stopped.")
    .argument("<NAME>", "the election");
  addStoreOptions(command)
    .option(
      "--candidate <id>",
      "only if this candidate leads: its id, or the readable part of it (`conclave leader NAME` prints it)",
    )
    .option("--dead", "its process is gone for certain: do not wait for the end of its lease")
    .option("--json", "one JSON object: event, election, candidate, token, waitMs")
    .addHelpText("after", HELP)
    .action(async (name: string, options: EvictOptions) => done(await evict(name, options)));
}

async function evict(name: string, options: EvictOptions): Promise<number> {
  const store = await openStore(options);
  await using backend = store.backend;
  const end = endOf(backend, options.dead === true);
  await using election = new Election({ name, backend, allowUnfenced: true });
  using stop = stopOnSignals();
  const leader = await election.leader({ signal: stop.signal });
  const say = speaker(name, options);
  const wanted = options.candidate;
  if (leader === null) return say("nobody", leader, `nobody leads "${name}" in ${store.where}`);
  if (wanted !== undefined && !isHeir(leader.candidate, wanted))
    return say("other", leader, `${leader.candidate} leads "${name}", not ${wanted}: nothing was changed`);
  if (wanted !== undefined && wanted !== leader.candidate)
    checkAlone(wanted, await standees(election, leader, stop.signal));
  const claim = { election: name, candidate: leader.candidate, token: leader.token };
  const waitMs = await bounded(systemClock, LIMIT_MS, stop.signal, "evicting", (signal) =>
    end(claim, signal),
  );
  if (waitMs === null)
    return say("other", leader, `${leader.candidate} leads "${name}" no longer: nothing was changed`);
  const next = waitMs === 0 ? "now" : `in ${formatDuration(Math.ceil(waitMs))} at the latest`;
  const what = `evicted ${leader.candidate}, leader of "${name}" (token ${leader.token}); another can lead ${next}`;
  return say("evicted", leader, what, waitMs);
}

/** How a term is ended here: resolves with the time that successors wait, `null` if it was over. */
function endOf(
  backend: Backend,
  dead: boolean,
): (claim: Claim, signal: AbortSignal) => Promise<number | null> {
  const { evict: bar, release } = backend;
  if (dead) {
    if (release === undefined) throw new UsageError("this store cannot end the term of another process");
    return async (claim, signal) =>
      (await release.call(backend, claim, { signal })) === "released" ? 0 : null;
  }
  if (bar === undefined)
    throw new UsageError(
      `${backend.name} cannot keep successors waiting for a leader that may be alive: end its process (its lease then ` +
        "runs out), or add --dead if the process is gone for certain",
    );
  return async (claim, signal) => {
    const answer = await bar.call(backend, claim, { signal });
    return answer === "not-held" ? null : answer.waitMs;
  };
}

/** What is ended by force is named beyond doubt: two that have the same readable part are told apart by their ids. */
function checkAlone(wanted: string, names: readonly string[]): void {
  const meant = names.filter((id) => isHeir(id, wanted));
  if (meant.length > 1)
    throw new UsageError(
      `${meant.join(" and ")} are both called ${wanted}: give the full id; nothing was changed`,
    );
}

type Result = "evicted" | "nobody" | "other";

function speaker(name: string, { json }: EvictOptions) {
  return (result: Result, leader: Leader | null, sentence: string, waitMs?: number): number => {
    const line = {
      event: result,
      election: name,
      candidate: leader?.candidate ?? null,
      token: leader?.token.toString() ?? null,
      ...(waitMs !== undefined && { waitMs }),
    };
    output().line(json === true ? JSON.stringify(line) : sentence);
    return result === "evicted" ? EXIT.ok : EXIT.no;
  };
}
