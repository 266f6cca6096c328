/** Looking at many seats at once: are their keys still there, and those they wait for? */
import type { KeyValue, Operation, TransactionAnswer } from "./client.js";
import type { Seat } from "./seat.js";

/** Two ranges for each seat, and never none at all: without a range the answer would be a local one. */
export function looks(seats: readonly Seat[], anyKey: string): Operation[] {
  if (seats.length === 0) return [{ kind: "range", key: anyKey, keysOnly: true }];
  return seats.flatMap((seat) => [
    { kind: "range", key: seat.key, keysOnly: true } as const,
    { kind: "range", key: seat.predecessor?.key ?? seat.key, keysOnly: true } as const,
  ]);
}

/** A seat, and what its token was before the look: one that joins meanwhile may not have been seen. */
export interface Looked {
  readonly seat: Seat;
  readonly token: bigint | undefined;
}

/** What the cluster agreed on, against what each seat believes. Returns how many seats still stand. */
export function compare(looked: readonly Looked[], answer: TransactionAnswer): number {
  let present = 0;
  looked.forEach(({ seat, token }, i) => {
    const own = answer.results[2 * i]?.kvs[0];
    const ahead = answer.results[2 * i + 1]?.kvs[0];
    // Whatever the revision: after a restore it can be lower than our token, and the key is gone all the same.
    if (token !== undefined && own?.createRevision === token) present++;
    else if (token !== undefined) seat.lose("its key is gone");
    if (seat.predecessor !== undefined && !isStill(seat.predecessor, ahead)) seat.ring();
  });
  return present;
}

function isStill(expected: { readonly createRevision: bigint }, kv: KeyValue | undefined): boolean {
  return kv?.createRevision === expected.createRevision;
}
