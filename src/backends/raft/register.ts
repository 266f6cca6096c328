/**
 * Registers (CASPaxos): records by compare-and-swap on a majority of voters,
 * without a log and without a leader. Here is the acceptor, which is pure;
 * `proposer.ts` asks acceptors. A *version* is the ballot under which a text was
 * first proposed; finishing somebody else's write under a higher ballot keeps it.
 */

/** A text, the ballot it was first proposed under, and the version it was written on. */
export interface Versioned {
  readonly version: bigint;
  readonly base: bigint | null;
  readonly text: string;
}

export interface Accepted extends Versioned {
  readonly ballot: bigint;
}

/** What an acceptor has on disk of one key. */
export interface RegisterRecord {
  readonly kind: "register";
  readonly key: string;
  /** Nothing below this ballot is accepted, nothing up to it is promised again. */
  readonly promised: bigint;
  readonly accepted: Accepted | null;
  /** What it had accepted was lost with its disk: until it accepts again it cannot tell whether there is a value. */
  readonly blank?: boolean | undefined;
}

export interface PrepareRequest {
  readonly kind: "prepare";
  readonly key: string;
  readonly ballot: bigint;
}

export interface AcceptRequest {
  readonly kind: "accept";
  readonly key: string;
  readonly ballot: bigint;
  readonly value: Versioned;
}

/** What has been accepted? Changes nothing. */
export interface QueryRequest {
  readonly kind: "query";
  readonly key: string;
}

export type RegisterRequest = PrepareRequest | AcceptRequest | QueryRequest;

export interface RegisterAnswer {
  readonly kind: "register";
  readonly yes: boolean;
  readonly promised: bigint;
  readonly accepted: Accepted | null;
  /** `accepted` says nothing: see {@link RegisterRecord}. */
  readonly blank?: boolean | undefined;
  readonly unfit?: string | undefined;
}

/** Ballots are `counter x 65536 + index of the voter`. Counters begin at the seed of the cluster, as terms do. */
export const BALLOT_STEP = 65_536n;
/** A counter this far beyond clock and memory was not reached by writing. */
const FAR_AHEAD = 86_400_000n;
const MOST_KEYS = 100_000;

/** An acceptor. As with the voter, memory changes at once and every answer waits for the disk. */
export class Acceptor {
  readonly #records = new Map<string, RegisterRecord>();
  readonly #seed: bigint;

  constructor(records: Iterable<RegisterRecord>, seed = 0n) {
    this.#seed = seed;
    for (const record of records) this.#records.set(record.key, record);
  }

  handle(request: RegisterRequest, wall: number): { answer: RegisterAnswer; persist?: RegisterRecord } {
    const { key } = request;
    const record: RegisterRecord = this.#records.get(key) ?? {
      kind: "register",
      key,
      promised: 0n,
      accepted: null,
    };
    const blank = record.blank === true && request.kind !== "accept" ? { blank: true } : {};
    const no = (unfit?: string): { answer: RegisterAnswer } => ({
      answer: {
        kind: "register",
        yes: false,
        promised: record.promised,
        accepted: record.accepted,
        ...blank,
        unfit,
      },
    });
    if (request.kind === "query") return { answer: { ...no().answer, yes: true } };
    const { ballot } = request;
    if (request.kind === "prepare" ? ballot <= record.promised : ballot < record.promised) return no();
    const least = max(BigInt(Math.max(0, Math.floor(wall))), this.#seed) * BALLOT_STEP;
    if (ballot > max(least, record.promised) + FAR_AHEAD * BALLOT_STEP)
      return no(`ballot ${ballot} is more than a day ahead of this voter's clock`);
    if (!this.#records.has(key) && this.#records.size >= MOST_KEYS)
      return no(`this voter keeps ${MOST_KEYS} records already`);
    const accepted = request.kind === "accept" ? { ballot, ...request.value } : record.accepted;
    const persist: RegisterRecord = { kind: "register", key, promised: ballot, accepted, ...blank };
    this.#records.set(key, persist);
    // A promise tells what was accepted before.
    return { answer: { kind: "register", yes: true, promised: ballot, accepted, ...blank }, persist };
  }

  /** The highest ballot it has met for this key. */
  promised(key: string): bigint {
    return this.#records.get(key)?.promised ?? 0n;
  }

  records(): RegisterRecord[] {
    return [...this.#records.values()];
  }
}

export function max(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}
