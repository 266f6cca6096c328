/** Follows who leads, as a majority of voters reports it. */
import { ConclaveError, describe } from "../../kit/errors.js";
import { onAbort } from "../../kit/wait.js";
import type { Leader, ObserveOptions } from "../../seam/backend.js";
import type { Clock } from "../../seam/clock.js";
import { View } from "./view.js";
import type { Voters } from "./voters.js";

export async function* observeLeader(
  voters: Voters,
  clock: Clock,
  election: string,
  { signal, pollMs, attemptMs }: ObserveOptions,
): AsyncGenerator<Leader | null> {
  const view = new View(voters, clock, election, attemptMs);
  view.start();
  // Whoever observes may stop asking for the next sight without a word.
  const unlink = onAbort(signal, () => view.stop());
  let last: Leader | null | undefined;
  let highest = -1n;
  let knownAt = clock.now();
  try {
    while (!signal.aborted) {
      const sight = view.sight();
      if (sight !== undefined) {
        knownAt = clock.now();
        const leader = sight.promised === null ? null : leaderOf(sight.promised);
        if (!same(leader, last) && (leader === null || leader.token >= highest)) {
          highest = leader?.token ?? highest;
          last = leader;
          yield leader;
          continue;
        }
      } else if (clock.now() - knownAt > attemptMs) {
        const why = view.error === undefined ? "" : `: ${describe(view.error)}`;
        throw new ConclaveError("unavailable", `too few voters answer to tell who leads${why}`, {
          cause: view.error,
        });
      }
      const now = clock.now();
      const dueMs =
        sight === undefined ? Math.min(pollMs, attemptMs / 4) : Math.min(pollMs, view.staleAt() - now);
      await view.changed(Math.max(1, dueMs), signal);
      // A promise that was reported has run out, unless it was renewed since: nobody is told of renewals.
      if (!signal.aborted && clock.now() >= now + dueMs) await refreshed(view, clock, signal, attemptMs);
    }
  } finally {
    unlink();
    view.stop();
  }
}

async function refreshed(view: View, clock: Clock, signal: AbortSignal, attemptMs: number): Promise<void> {
  const done = view.refresh();
  const until = clock.now() + attemptMs;
  while (view.sight() === undefined && clock.now() < until && !signal.aborted) {
    const settled = await Promise.race([done.then(() => true), view.changed(until - clock.now(), signal)]);
    if (settled === true) return;
  }
}

function leaderOf(promised: {
  term: bigint;
  bid: { candidate: string };
  value: string;
  since: number;
}): Leader {
  return {
    candidate: promised.bid.candidate,
    token: promised.term,
    value: promised.value,
    since: promised.since,
  };
}

function same(a: Leader | null, b: Leader | null | undefined): boolean {
  if (a === null || b === null || b === undefined) return a === b;
  return a.token === b.token && a.candidate === b.candidate && a.value === b.value;
}
