/** Looking at many seats at once: are their keys still there, and those they wait for? */
import { ConclaveError, isRetriable } from "../../core/errors.js";
import type { CallLimits, EtcdClient, KeyValue, Operation, TransactionAnswer } from "./client.js";
import type { Seat } from "./seat.js";

/** What a look came to. */
interface Sight {
  readonly answer: TransactionAnswer;
  /** How many of the seats still stand. */
  readonly present: number;
}

/** What the cluster says about these seats; `anyKey` is read if there are none. Seats whose key is gone are lost by it. */
export async function look(
  client: EtcdClient,
  seats: readonly Seat[],
  anyKey: string,
  limits: CallLimits,
): Promise<Sight> {
  const looked = seats.map((seat) => ({ seat, token: seat.token }));
  try {
    const then = looks(seats, anyKey);
    const answer = await client.transaction({ when: [], then, otherwise: [] }, limits);
    if (answer.results.length !== then.length)
      throw new ConclaveError("unavailable", "etcd did not answer all it was asked; asking again");
    return { answer, present: compare(looked, answer) };
  } catch (error) {
    if (isRetriable(error)) throw error;
    if (seats.length === 1) seats[0]?.refuse(error);
    if (seats.length < 2) throw error;
    return lookApart(client, seats, limits, error);
  }
}

/** A refusal may concern one election alone: the others, and those who lead in them, must not pay for it. */
async function lookApart(
  client: EtcdClient,
  seats: readonly Seat[],
  limits: CallLimits,
  refusal: unknown,
): Promise<Sight> {
  const all = await Promise.allSettled(seats.map((seat) => look(client, [seat], seat.key, limits)));
  const seen = all.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const [first] = seen;
  if (first === undefined) throw refusal;
  if (seen.some(({ answer }) => answer.raftTerm !== first.answer.raftTerm))
    throw new ConclaveError("unavailable", "etcd's leader changed during a renewal; asking again");
  return { answer: first.answer, present: seen.reduce((sum, { present }) => sum + present, 0) };
}

/** Two ranges for each seat, and never none at all: without a range the answer would be a local one. */
function looks(seats: readonly Seat[], anyKey: string): Operation[] {
  if (seats.length === 0) return [{ kind: "range", key: anyKey, keysOnly: true }];
  return seats.flatMap((seat) => [
    { kind: "range", key: seat.key, keysOnly: true } as const,
    { kind: "range", key: seat.predecessor?.key ?? seat.key, keysOnly: true } as const,
  ]);
}

/** A seat, and what its token was before the look: one that joins meanwhile may not have been seen. */
interface Looked {
  readonly seat: Seat;
  readonly token: bigint | undefined;
}

/** What the cluster agreed on, against what each seat believes. Returns how many seats still stand. */
function compare(looked: readonly Looked[], answer: TransactionAnswer): number {
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
