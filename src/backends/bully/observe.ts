/** Follows who leads, as this process sees it; on both sides of a partition it sees different leaders. */
import { ConclaveError } from "../../kit/errors.js";
import { untilAborted } from "../../kit/wait.js";
import type { Leader, ObserveOptions } from "../../seam/backend.js";
import type { LeaderNote } from "./messages.js";
import type { BullyNode } from "./node.js";

/** A process that is no peer is not told of changes: it asks so often. */
const LONGEST_MS = 250;

export async function* observeLeader(
  node: BullyNode,
  election: string,
  { signal, pollMs, attemptMs }: ObserveOptions,
): AsyncGenerator<Leader | null> {
  const isPeer = node.rank(node.name) >= 0;
  const waitMs = Math.min(pollMs, LONGEST_MS);
  let last: LeaderNote | null | undefined;
  while (!signal.aborted) {
    const leader = await strongest(node, election, isPeer && last !== undefined, signal, attemptMs);
    if (last === undefined || !same(leader, last)) {
      last = leader;
      if (leader === null) yield null;
      else {
        const { candidate, token, value, since } = leader;
        yield { candidate, token, value, since };
      }
      continue;
    }
    await node.changed(election, Math.max(1, Math.min(waitMs, leader?.leftMs ?? waitMs)), signal);
  }
}

/** What this peer knows, or else what the others say. */
async function strongest(
  node: BullyNode,
  election: string,
  isTold: boolean,
  signal: AbortSignal,
  attemptMs: number,
): Promise<LeaderNote | null> {
  const own = node.room(election).leader;
  if (own !== null || isTold) return own;
  const replies = await untilAborted(signal, node.askAll(node.others, { kind: "who", election }, attemptMs));
  if (replies.size === 0 && node.others.length > 0 && node.rank(node.name) < 0)
    throw new ConclaveError("unavailable", "no peer answers");
  const told = [...replies.values()].flatMap(({ leader }) => leader ?? []);
  return told.reduce<LeaderNote | null>(
    (best, one) => (best === null || node.rank(one.peer) > node.rank(best.peer) ? one : best),
    node.room(election).leader,
  );
}

function same(a: LeaderNote | null, b: LeaderNote | null): boolean {
  if (a === null || b === null) return a === b;
  return a.peer === b.peer && a.token === b.token && a.value === b.value;
}
