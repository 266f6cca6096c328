/**
 * Registers (CASPaxos): records by compare-and-swap on a majority of voters,
 * without a log and without a leader. The acceptor is pure; the proposer asks
 * over {@link Acceptors}. A *version* is the ballot under which a text was first
 * proposed; finishing somebody else's write under a higher ballot keeps it.
 */
import type { Clock } from "../../seam/clock.js";
import { ConclaveError } from "../../kit/errors.js";
import { sleep, throwIfStopped } from "../../kit/wait.js";
import type { Stop } from "../../kit/stop.js";
import { gather, majorityOf } from "./quorum.js";

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
const BALLOT_STEP = 65_536n;
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

/** The acceptors of all voters. */
export interface Acceptors {
  readonly names: readonly string[];
  /** Rejects when no answer came: then it is not known what became of the request. */
  ask(voter: string, request: RegisterRequest, limitMs: number): Promise<RegisterAnswer>;
}

export interface ProposerOptions {
  readonly acceptors: Acceptors;
  /** Its own voter, asked before all others (ADR 042, lost disks). */
  readonly self: string;
  readonly clock: Clock;
  /** Counters begin here. Not at the clock: a wrong one would leave promises behind that no other voter can surpass. */
  readonly seed: () => bigint;
  /** Longest a single request may take. */
  readonly limitMs: number;
}

interface Prepared {
  readonly ballot: bigint;
  readonly value: Versioned | null;
  /** All of the majority show it under one ballot: it is decided already. */
  readonly settled: boolean;
}

export class Proposer {
  readonly #options: ProposerOptions;
  readonly #index: bigint;

  constructor(options: ProposerOptions) {
    this.#options = options;
    this.#index = BigInt([...options.acceptors.names].sort().indexOf(options.self));
    if (this.#index < 0n) throw new Error("only a voter proposes");
  }

  /** `null` = the version was not `expected`, and nothing was written. Throws = not known. */
  async write(key: string, expected: bigint | null, text: string, stop: Stop): Promise<Versioned | null> {
    /** Ballots under which this very write was sent out, and overtaken. */
    const tried = new Set<bigint>();
    for (;;) {
      const { ballot, value, settled } = await this.#prepare(key, stop);
      if ((value?.version ?? null) === expected) {
        // None of the earlier tries can come true any more: a majority has promised this ballot and shows none of them.
        const written = { version: ballot, base: expected, text };
        tried.add(ballot);
        if (await this.#accept(key, ballot, written, stop)) return written;
        await this.#backOff(tried.size, stop);
        continue;
      }
      if (value !== null && !settled && !(await this.#accept(key, ballot, value, stop))) continue;
      if (value !== null && tried.has(value.version)) return value;
      // Written on the same version as ours would have been: ours was not in between.
      if (tried.size === 0 || value?.base === expected) return null;
      throw new ConclaveError(
        "unavailable",
        "other writes came in between; whether this one took effect is unknown",
      );
    }
  }

  /** The newest that is decided. */
  async read(key: string, stop: Stop): Promise<Versioned | null> {
    throwIfStopped(stop);
    const { names } = this.#options.acceptors;
    const majority = majorityOf(names.length);
    const shown = await gather(this.#ask(names, { kind: "query", key }), (answers) => {
      const fit = [...answers.values()].filter(({ unfit, blank }) => unfit === undefined && blank !== true);
      for (const { accepted } of fit) {
        const same = fit.filter((other) => other.accepted?.ballot === accepted?.ballot);
        if (same.length >= majority) return { value: accepted };
      }
      return answers.size === names.length || fit.length > majority ? { value: undefined } : undefined;
    }).catch(() => ({ value: undefined }));
    if (shown.value !== undefined) return shown.value;
    // What only a minority shows may never come to be, or may be decided: finish it, then it is.
    for (;;) {
      const { ballot, value, settled } = await this.#prepare(key, stop);
      if (value === null || settled || (await this.#accept(key, ballot, value, stop))) return value;
    }
  }

  async #prepare(key: string, stop: Stop): Promise<Prepared> {
    const { self, acceptors } = this.#options;
    let highest = 0n;
    for (let tries = 0; ; tries++) {
      throwIfStopped(stop);
      const ballot = this.#above(highest);
      const own = await acceptors.ask(self, { kind: "prepare", key, ballot }, this.#options.limitMs);
      if (own.unfit !== undefined) throw new ConclaveError("unavailable", own.unfit);
      highest = max(highest, own.promised);
      if (!own.yes) continue;
      const others = acceptors.names.filter((name) => name !== self);
      const answers = new Map([[self, own]]);
      const prepared = await this.#promises(key, ballot, answers, others);
      if ("ballot" in prepared) return prepared;
      highest = max(highest, prepared.highest);
      await this.#backOff(tries + 1, stop);
    }
  }

  /** Two that propose at once would go on overtaking each other. */
  async #backOff(tries: number, stop: Stop): Promise<void> {
    const { clock } = this.#options;
    await sleep(clock, (2 + 20 * clock.random()) * Math.min(tries, 8), stop);
  }

  async #promises(
    key: string,
    ballot: bigint,
    answers: Map<string, RegisterAnswer>,
    others: readonly string[],
  ): Promise<Prepared | { readonly highest: bigint }> {
    const count = others.length + 1;
    const majority = majorityOf(count);
    const decide = (
      got: ReadonlyMap<string, RegisterAnswer>,
      last: boolean,
    ): Prepared | { highest: bigint } | undefined => {
      const all = [...answers.values(), ...got.values()];
      // A voter that lost what it had accepted promises, but does not count: a decided value may be missing in its answer.
      const yes = all.filter((answer) => answer.yes && answer.blank !== true);
      if (yes.length >= majority) return prepared(ballot, yes);
      const refused = all.filter((answer) => !answer.yes && answer.unfit === undefined);
      if (refused.length > count - majority || (last && refused.length > 0 && all.length >= majority))
        return { highest: refused.reduce((most, { promised }) => max(most, promised), ballot) };
      return undefined;
    };
    return (
      decide(new Map(), others.length === 0) ??
      gather(this.#ask(others, { kind: "prepare", key, ballot }), decide)
    );
  }

  /** `false`: a higher ballot came in between. Throws = not known. */
  async #accept(key: string, ballot: bigint, value: Versioned, stop: Stop): Promise<boolean> {
    throwIfStopped(stop);
    const { names } = this.#options.acceptors;
    const { version, base, text } = value;
    const request = { kind: "accept", key, ballot, value: { version, base, text } } as const;
    const majority = majorityOf(names.length);
    return gather(this.#ask(names, request), (answers, last) => {
      const yes = [...answers.values()].filter((answer) => answer.yes).length;
      if (yes >= majority) return true;
      const over = answers.size - yes > names.length - majority || (last && answers.size >= majority);
      return over ? false : undefined;
    });
  }

  #ask(names: readonly string[], request: RegisterRequest): Map<string, Promise<RegisterAnswer>> {
    const { acceptors, limitMs } = this.#options;
    return new Map(names.map((name) => [name, acceptors.ask(name, request, limitMs)]));
  }

  #above(highest: bigint): bigint {
    return max(this.#options.seed(), highest / BALLOT_STEP + 1n) * BALLOT_STEP + this.#index;
  }
}

function prepared(ballot: bigint, promises: readonly RegisterAnswer[]): Prepared {
  const newest = promises.reduce<Accepted | null>(
    (best, { accepted }) => (accepted !== null && accepted.ballot > (best?.ballot ?? -1n) ? accepted : best),
    null,
  );
  return {
    ballot,
    value: newest,
    settled: promises.every(({ accepted }) => accepted?.ballot === newest?.ballot),
  };
}

function max(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}
