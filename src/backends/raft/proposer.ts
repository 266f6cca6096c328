/** Reads and writes registers by asking a majority of their acceptors. */
import type { Clock } from "../../seam/clock.js";
import { ConclaveError } from "../../kit/errors.js";
import { sleep, throwIfStopped } from "../../kit/wait.js";
import type { Stop } from "../../kit/stop.js";
import { gather, majorityOf } from "./quorum.js";
import { BALLOT_STEP, max } from "./register.js";
import type { Accepted, RegisterAnswer, RegisterRequest, Versioned } from "./register.js";

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

/** Looks at a value that others are just writing, before it is finished in their place. */
const LOOKS = 3;
/** Of a round that was lost: how long it took, at least and at most, so far as the pause after it goes. */
const ROUND = { leastMs: 2, mostMs: 50 };
const MOST_TIMES = 8;

/**
 * Two that propose at once would go on overtaking each other: after each lost
 * round one waits by chance for up to as many rounds as it has lost.
 */
class Pace {
  readonly #clock: Clock;
  #lost = 0;
  #from: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#from = clock.now();
  }

  async lost(stop: Stop): Promise<void> {
    const tookMs = this.#clock.now() - this.#from;
    const roundMs = Math.max(ROUND.leastMs, Math.min(tookMs, ROUND.mostMs));
    this.#lost = Math.min(this.#lost + 1, MOST_TIMES);
    await sleep(this.#clock, (0.1 + this.#clock.random()) * roundMs * this.#lost, stop);
    this.#from = this.#clock.now();
  }
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
    const pace = new Pace(this.#options.clock);
    for (;;) {
      const { ballot, value, settled } = await this.#prepare(key, pace, stop);
      if ((value?.version ?? null) === expected) {
        // None of the earlier tries can come true any more: a majority has promised this ballot and shows none of them.
        const written = { version: ballot, base: expected, text };
        tried.add(ballot);
        if (await this.#accept(key, ballot, written, stop)) return written;
        await pace.lost(stop);
        continue;
      }
      if (value !== null && !settled && !(await this.#accept(key, ballot, value, stop))) {
        await pace.lost(stop);
        continue;
      }
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
    const pace = new Pace(this.#options.clock);
    for (let looks = 0; looks < LOOKS; looks++) {
      throwIfStopped(stop);
      const shown = await this.#shown(key);
      if (shown === "too few") break;
      if (shown !== "unsettled") return shown.value;
      // A write that is under way looks like this: to finish it in its writer's place makes both slow.
      if (looks < LOOKS - 1) await pace.lost(stop);
    }
    // What only a minority shows may never come to be, or may be decided: finish it, then it is.
    for (;;) {
      const { ballot, value, settled } = await this.#prepare(key, pace, stop);
      if (value === null || settled || (await this.#accept(key, ballot, value, stop))) return value;
      await pace.lost(stop);
    }
  }

  /** What a majority shows under one ballot, which is decided. `"too few"`: no majority answers. */
  async #shown(key: string): Promise<{ readonly value: Versioned | null } | "unsettled" | "too few"> {
    const { names } = this.#options.acceptors;
    const majority = majorityOf(names.length);
    return gather(this.#ask(names, { kind: "query", key }), (answers) => {
      const fit = [...answers.values()].filter(({ unfit, blank }) => unfit === undefined && blank !== true);
      for (const { accepted } of fit) {
        const same = fit.filter((other) => other.accepted?.ballot === accepted?.ballot);
        if (same.length >= majority) return { value: accepted };
      }
      return answers.size === names.length || fit.length > majority ? "unsettled" : undefined;
    }).catch(() => "too few" as const);
  }

  async #prepare(key: string, pace: Pace, stop: Stop): Promise<Prepared> {
    const { self, acceptors } = this.#options;
    let highest = 0n;
    for (;;) {
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
      await pace.lost(stop);
    }
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
