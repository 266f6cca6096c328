/**
 * Are the keys of these seats still in the store, and the keys they wait for? A
 * renewal of the lease counts only for the keys that were seen after it was
 * asked for: a key can vanish while the lease lives on (deleted by hand, restore
 * of a backup), and a watch can miss that.
 */
import type { Extension } from "../../seam/backend.js";
import { ConclaveError, isRetriable } from "../../kit/errors.js";
import type { CallLimits, EtcdClient, KeyValue, Operation, TransactionAnswer } from "./client.js";
import type { Seat, Sighting } from "./seat.js";

/** etcd takes 128 operations in a transaction, unless it was told otherwise. */
const MOST_OPERATIONS = 120;
/** Transactions under way at once, for a lease with thousands of keys. */
const AT_ONCE = 8;
/** Renewals after which each key was read once, also in a store to which nobody writes. */
const READ_ALL_WITHIN = 100;

export interface Verification {
  /** Raft term of the answer that extended the lease: an answer of another term proves nothing about it. */
  readonly raftTerm: bigint;
  /** What a key that is still there is extended by; `undefined`: nothing, the keys are only counted. */
  readonly extension: Extension | undefined;
  readonly limits: CallLimits;
  /** Refused for this seat alone: no renewal counts for it. */
  denied(seat: Seat, error: unknown): void;
}

export interface Verified {
  /** How many of the seats still have their key. */
  readonly present: number;
  /** The lowest revision among the answers. */
  readonly revision: bigint;
  /** The whole answer, if it was one. */
  readonly answer?: TransactionAnswer;
}

/**
 * Asks the cluster about all of the seats; `anyKey` is read if there are none.
 * A few are read first. Their answer has the store's revision, and a key that was
 * seen at this revision before is as it was, since every write raises it: it is
 * not read again. All others are, in as many transactions as it takes. Seats
 * whose key is gone are lost by it. If some could not be asked about it throws,
 * after all others were dealt with.
 */
export async function verifyKeys(
  client: EtcdClient,
  seats: readonly Seat[],
  anyKey: string,
  verification: Verification,
): Promise<Verified> {
  const verified: Verified[] = [];
  const failures: unknown[] = [];
  const verify = async (part: readonly Question[]): Promise<TransactionAnswer | undefined> => {
    try {
      const one = await verifyPart(client, part, anyKey, verification);
      verified.push(one);
      return one.answer;
    } catch (error) {
      failures.push(error);
      return undefined;
    }
  };
  const few = Math.min(MOST_OPERATIONS / 2, Math.ceil(seats.length / READ_ALL_WITHIN));
  const answer = await verify(seats.slice(0, few).map(questionOf));
  const others = seats.slice(few);
  const { extension } = verification;
  const unchanged = (seat: Seat): boolean => extension !== undefined && isUnchanged(seat, answer);
  let present = 0;
  for (const seat of others) {
    if (!unchanged(seat)) continue;
    present++;
    seat.extension = extension;
  }
  const parts = present === others.length ? [] : split(others.filter((seat) => !unchanged(seat)));
  const work = async (): Promise<void> => {
    for (let part = parts.shift(); part !== undefined; part = parts.shift()) await verify(part);
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, parts.length) }, work));
  if (failures.length > 0) throw failures[0];
  return verified.reduce(
    (all, one) => ({
      present: all.present + one.present,
      revision: one.revision < all.revision ? one.revision : all.revision,
    }),
    { present, revision: verified[0]?.revision ?? 0n },
  );
}

/** Those that are read whatever the revision come first: each renewal others, so that all are read now and then. */
export function inTurn(seats: readonly Seat[], round: number): readonly Seat[] {
  const from = seats.length === 0 ? 0 : (round * Math.ceil(seats.length / READ_ALL_WITHIN)) % seats.length;
  return [...seats.slice(from), ...seats.slice(0, from)];
}

/** Whether nothing at all was written since its key was seen, and the key it waits for, by the same server. */
function isUnchanged({ seen, predecessor }: Seat, answer: TransactionAnswer | undefined): boolean {
  if (seen === undefined || answer === undefined || seen.predecessor !== predecessor) return false;
  return seen.revision === answer.revision && seen.connection === answer.connection;
}

/** What is asked about one seat, and its token before the question: one that joins meanwhile may not have been seen. */
interface Question {
  readonly seat: Seat;
  readonly token: bigint | undefined;
  readonly predecessor: Seat["predecessor"];
  readonly operations: readonly Operation[];
}

/** Never none at all: a transaction without a range would be answered locally. */
function split(seats: readonly Seat[]): Question[][] {
  const parts: Question[][] = [[]];
  let operations = 0;
  for (const question of seats.map(questionOf)) {
    if (operations + question.operations.length > MOST_OPERATIONS) {
      parts.push([]);
      operations = 0;
    }
    parts.at(-1)?.push(question);
    operations += question.operations.length;
  }
  return parts;
}

function questionOf(seat: Seat): Question {
  const { key, token, predecessor } = seat;
  const keys = predecessor === undefined ? [key] : [key, predecessor.key];
  return {
    seat,
    token,
    predecessor,
    operations: keys.map((each) => ({ kind: "range", key: each, keysOnly: true })),
  };
}

async function verifyPart(
  client: EtcdClient,
  part: readonly Question[],
  anyKey: string,
  verification: Verification,
): Promise<Verified> {
  const asked = part.flatMap(({ operations }) => operations);
  const then: readonly Operation[] =
    asked.length > 0 ? asked : [{ kind: "range", key: anyKey, keysOnly: true }];
  try {
    const answer = await client.transaction({ when: [], then, otherwise: [] }, verification.limits);
    if (answer.results.length !== then.length)
      throw new ConclaveError("unavailable", "etcd did not answer all it was asked; asking again");
    assertSameTerm(verification.raftTerm, answer);
    return { present: compare(part, answer, verification.extension), revision: answer.revision, answer };
  } catch (error) {
    if (isRetriable(error)) throw error;
    const [only] = part.length === 1 ? part : [];
    if (only !== undefined) verification.denied(only.seat, error);
    if (part.length < 2) throw error;
    return verifyApart(client, part, anyKey, verification, error);
  }
}

/** A refusal may concern one election alone: the others, and those who lead in them, must not pay for it. */
async function verifyApart(
  client: EtcdClient,
  part: readonly Question[],
  anyKey: string,
  verification: Verification,
  refusal: unknown,
): Promise<Verified> {
  const apart = part.map((one) => verifyPart(client, [one], anyKey, verification));
  const settled = await Promise.allSettled(apart);
  const verified = settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const unknown = settled.find((one) => one.status === "rejected" && isRetriable(one.reason));
  if (unknown?.status === "rejected") throw unknown.reason;
  if (verified.length === 0) throw refusal;
  const revisions = verified.map(({ revision }) => revision);
  return {
    present: verified.reduce((sum, { present }) => sum + present, 0),
    revision: revisions.reduce((lowest, each) => (each < lowest ? each : lowest)),
  };
}

function assertSameTerm(raftTerm: bigint, answer: TransactionAnswer): void {
  if (raftTerm === answer.raftTerm) return;
  throw new ConclaveError(
    "unavailable",
    `etcd's leader changed during a renewal (raft terms ${raftTerm} and ${answer.raftTerm}); it does not count, asking again`,
  );
}

/** What the cluster agreed on, against what each seat takes for granted. Returns how many keys are still there. */
function compare(
  part: readonly Question[],
  answer: TransactionAnswer,
  extension: Extension | undefined,
): number {
  let present = 0;
  let at = 0;
  for (const { seat, token, predecessor, operations } of part) {
    const own = answer.results[at]?.kvs[0];
    const ahead = operations.length > 1 ? answer.results[at + 1]?.kvs[0] : undefined;
    at += operations.length;
    // Whatever the revision: after a restore it can be lower than our token, and the key is gone all the same.
    if (token !== undefined && own?.createRevision === token) {
      present++;
      seat.denials = 0;
      if (extension !== undefined) seat.extension = extension;
      seat.seen = sighting(answer, predecessor);
    } else if (token !== undefined) seat.lose("its key is gone");
    if (operations.length > 1) seat.met(ahead);
    if (operations.length > 1 && seat.predecessor !== undefined && !isStill(seat.predecessor, ahead))
      seat.ring();
  }
  return present;
}

function sighting(
  { revision, connection }: TransactionAnswer,
  predecessor: Seat["predecessor"],
): Sighting | undefined {
  return connection === undefined ? undefined : { revision, connection, predecessor };
}

function isStill(expected: { readonly createRevision: bigint }, kv: KeyValue | undefined): boolean {
  return kv?.createRevision === expected.createRevision;
}
