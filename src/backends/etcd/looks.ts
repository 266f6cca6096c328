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

/** What the cluster agreed on, against what each seat believes. Returns how many seats still stand. */
export function compare(seats: readonly Seat[], answer: TransactionAnswer): number {
  let present = 0;
  seats.forEach((seat, i) => {
    const own = answer.results[2 * i]?.kvs[0];
    const ahead = answer.results[2 * i + 1]?.kvs[0];
    if (seat.token !== undefined && own?.createRevision === seat.token) present++;
    else if (seat.token !== undefined && seat.token <= answer.revision) seat.lose("its key is gone");
    if (seat.predecessor !== undefined && !isStill(seat.predecessor, ahead)) seat.ring();
  });
  return present;
}

function isStill(expected: { readonly createRevision: bigint }, kv: KeyValue | undefined): boolean {
  return kv?.createRevision === expected.createRevision;
}
