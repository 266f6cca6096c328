/**
 * Checks that these candidate keys are still in the store, and their
 * predecessors. A renewal of the lease counts only for keys that were read after
 * it was requested: a key can disappear while the lease lives on (deleted by
 * hand, restore of a backup), and a watch can miss that.
 */
import type { Extension } from "../../seam/backend.js";
import { ConclaveError, isRetriable } from "../../kit/errors.js";
import type { CallLimits, EtcdClient, KeyValue, Operation, TransactionAnswer } from "./client.js";
import { askTogether } from "./ask-together.js";
import type { CandidateKey, LastSeen } from "./candidate-key.js";

/** etcd takes 128 operations in a transaction, unless it was told otherwise. */
const MOST_OPERATIONS = 120;
/** Transactions under way at once, for a lease with thousands of keys. */
const AT_ONCE = 8;
/** Renewals after which each key was read once, also in a store to which nobody writes. */
const READ_ALL_WITHIN = 100;

export interface Verification {
  /** Raft term of the answer that extended the lease: an answer of another term proves nothing about it. */
  readonly raftTerm: bigint;
  /** The extension for keys that still exist; `undefined`: none, the keys are only counted. */
  readonly extension: Extension | undefined;
  readonly limits: CallLimits;
  /** Refused for this key only: no renewal counts for it. */
  denied(candidateKey: CandidateKey, error: unknown): void;
}

export interface Verified {
  /** How many of the keys still exist. */
  readonly present: number;
  /** The lowest revision among the answers. */
  readonly revision: bigint;
}

/**
 * Reads all of the keys; `anyKey` if there are none. A few are read first. Their
 * answer has the store's revision: a key that was last read at this revision has
 * not changed, since every write raises it, and is not read again. All others
 * are, in as many transactions as it takes. Keys that are gone are marked lost.
 * If some could not be read it throws, after all others were handled.
 */
export async function verifyKeys(
  client: EtcdClient,
  candidateKeys: readonly CandidateKey[],
  anyKey: string,
  verification: Verification,
): Promise<Verified> {
  const verified: Verified[] = [];
  const failures: unknown[] = [];
  const verify = async (part: readonly Question[]): Promise<TransactionAnswer | undefined> => {
    let whole: TransactionAnswer | undefined;
    const ask = async (some: readonly Question[]): Promise<void> => {
      const one = await verifyPart(client, some, anyKey, verification);
      verified.push(one);
      if (some === part) whole = one.answer;
    };
    await askTogether(part, ask, (some, error) => failures.push(failureOf(some, error, verification)));
    return whole;
  };
  const few = Math.min(MOST_OPERATIONS / 2, Math.ceil(candidateKeys.length / READ_ALL_WITHIN));
  const answer = await verify(candidateKeys.slice(0, few).map(questionOf));
  const others = candidateKeys.slice(few);
  const { extension } = verification;
  const unchanged = (candidateKey: CandidateKey): boolean =>
    extension !== undefined && isUnchanged(candidateKey, answer);
  let present = 0;
  for (const candidateKey of others) {
    if (!unchanged(candidateKey)) continue;
    present++;
    candidateKey.extension = extension;
  }
  const parts =
    present === others.length ? [] : split(others.filter((candidateKey) => !unchanged(candidateKey)));
  const work = async (): Promise<void> => {
    for (let part = parts.shift(); part !== undefined; part = parts.shift()) await verify(part);
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, parts.length) }, work));
  throwFailure(failures, verified.length);
  return verified.reduce(
    (all, one) => ({
      present: all.present + one.present,
      revision: one.revision < all.revision ? one.revision : all.revision,
    }),
    { present, revision: verified[0]?.revision ?? 0n },
  );
}

/**
 * What is not known makes the whole renewal unknown. A refusal concerns one key only, whose owner has been told, also
 * if it was read by itself: then the renewal counts for the others.
 */
function throwFailure(failures: readonly unknown[], verified: number): void {
  for (const failure of failures) if (isRetriable(failure)) throw failure;
  if (verified === 0 && failures.length > 0) throw failures[0];
}

/** Rotates the keys: the first few are read whatever the revision, so each renewal reads others. */
export function inTurn(candidateKeys: readonly CandidateKey[], round: number): readonly CandidateKey[] {
  const from =
    candidateKeys.length === 0
      ? 0
      : (round * Math.ceil(candidateKeys.length / READ_ALL_WITHIN)) % candidateKeys.length;
  return [...candidateKeys.slice(from), ...candidateKeys.slice(0, from)];
}

/** Whether nothing at all was written since its key was seen, and the key it waits for, by the same server. */
function isUnchanged({ seen, predecessor }: CandidateKey, answer: TransactionAnswer | undefined): boolean {
  if (seen === undefined || answer === undefined || seen.predecessor !== predecessor) return false;
  return seen.revision === answer.revision && seen.connection === answer.connection;
}

/** The reads for one key, and its token before them: a key created meanwhile may not be in the answer. */
interface Question {
  readonly candidateKey: CandidateKey;
  readonly token: bigint | undefined;
  readonly predecessor: CandidateKey["predecessor"];
  readonly operations: readonly Operation[];
}

/** At least one part, with at least one read: a transaction without a range is answered without asking the cluster. */
function split(candidateKeys: readonly CandidateKey[]): Question[][] {
  const parts: Question[][] = [[]];
  let operations = 0;
  for (const question of candidateKeys.map(questionOf)) {
    if (operations + question.operations.length > MOST_OPERATIONS) {
      parts.push([]);
      operations = 0;
    }
    parts.at(-1)?.push(question);
    operations += question.operations.length;
  }
  return parts;
}

function questionOf(candidateKey: CandidateKey): Question {
  const { key, token, predecessor } = candidateKey;
  const keys = predecessor === undefined ? [key] : [key, predecessor.key];
  return {
    candidateKey,
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
): Promise<Verified & { readonly answer: TransactionAnswer }> {
  const asked = part.flatMap(({ operations }) => operations);
  const then: readonly Operation[] =
    asked.length > 0 ? asked : [{ kind: "range", key: anyKey, keysOnly: true }];
  const answer = await client.transaction({ when: [], then, otherwise: [] }, verification.limits);
  if (answer.results.length !== then.length)
    throw new ConclaveError("unavailable", "etcd did not answer all it was asked; asking again");
  assertSameTerm(verification.raftTerm, answer);
  return { present: compare(part, answer, verification.extension), revision: answer.revision, answer };
}

/** What a failure means for the renewal. Whoever may not read its key is told: then the failure is its own only. */
function failureOf(part: readonly Question[], error: unknown, { denied }: Verification): unknown {
  const [only] = part;
  if (part.length !== 1 || only === undefined || isRetriable(error)) return error;
  try {
    denied(only.candidateKey, error);
    return error;
  } catch (unknown) {
    return unknown;
  }
}

function assertSameTerm(raftTerm: bigint, answer: TransactionAnswer): void {
  if (raftTerm === answer.raftTerm) return;
  throw new ConclaveError(
    "unavailable",
    `etcd's leader changed during a renewal (raft terms ${raftTerm} and ${answer.raftTerm}); it does not count, asking again`,
  );
}

/** Compares the answer with the expected keys and predecessors. Returns how many keys still exist. */
function compare(
  part: readonly Question[],
  answer: TransactionAnswer,
  extension: Extension | undefined,
): number {
  let present = 0;
  let at = 0;
  for (const { candidateKey, token, predecessor, operations } of part) {
    const own = answer.results[at]?.kvs[0];
    const found = operations.length > 1 ? answer.results[at + 1]?.kvs[0] : undefined;
    at += operations.length;
    // The answer's revision is not considered: after a restore it can be lower than our token although the key is gone.
    if (token !== undefined && own?.createRevision === token) {
      present++;
      candidateKey.denials = 0;
      if (extension !== undefined) candidateKey.extension = extension;
      candidateKey.seen = lastSeen(answer, predecessor);
    } else if (token !== undefined) {
      candidateKey.inItsPlace(own);
      candidateKey.lose("its key is gone");
    }
    if (operations.length > 1) candidateKey.seenAhead(found);
    if (
      operations.length > 1 &&
      candidateKey.predecessor !== undefined &&
      !isStill(candidateKey.predecessor, found)
    )
      candidateKey.wake();
  }
  return present;
}

function lastSeen(
  { revision, connection }: TransactionAnswer,
  predecessor: CandidateKey["predecessor"],
): LastSeen | undefined {
  return connection === undefined ? undefined : { revision, connection, predecessor };
}

function isStill(expected: { readonly createRevision: bigint }, kv: KeyValue | undefined): boolean {
  return kv?.createRevision === expected.createRevision;
}
