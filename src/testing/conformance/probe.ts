/**
 * The program of a candidate under test: it stands for ever, asks `term.held`
 * every two milliseconds and writes down what it was told, stamped with the
 * machine's monotonic clock, which all processes of a machine share.
 *
 * Every line is one JSON object with `ev` and `t` (nanoseconds, as a string):
 *
 *   hello    {pid, inc, el, cand, ttl}  the process has begun; `inc` is its own
 *   leading  {token}                    a term has begun
 *   span     {token, from, to, n}       `n` times in a row `held` was true: the first answer was there
 *                                       at `from`, the last question was asked at `to`
 *   not-held {token, from, to}          `held` was false, asked and answered in between; the first of many
 *   stopped  {token, why}               the term's end was reported
 *   bye      {}                         the election is closed
 *
 * A silence of the process breaks a span, so a pause can be seen in it.
 */
import type { Election } from "../../core/election.js";
import type { Term } from "../../core/term.js";

export interface ProbeOptions {
  readonly election: Election;
  readonly write: (line: string) => void;
  /** Ends the candidate in good order. */
  readonly signal: AbortSignal;
  /** Default 2 ms. */
  readonly everyMs?: number;
  /** Done in each term besides, until `term.signal` aborts. */
  readonly work?: (term: Term) => Promise<void>;
}

/** Two true answers further apart than this belong to two spans. */
const LONGEST_GAP_NS = 20_000_000n;
/** What a killed process has not written is lost: at most this much of the end of a span. */
const FLUSH_NS = 50_000_000n;
/** Terms that have ended are still asked: one that says "yes" again must be seen. */
const MOST_TERMS = 3;

/** The observations of one term. */
class Watch {
  readonly term: Term;
  readonly #emit: (event: object) => void;
  #first = 0n;
  #last = 0n;
  #count = 0;
  #written = 0n;
  #denied = false;

  constructor(term: Term, emit: (event: object) => void) {
    this.term = term;
    this.#emit = emit;
  }

  ask(): void {
    const from = process.hrtime.bigint();
    const held = this.term.held;
    const to = process.hrtime.bigint();
    if (held) this.#yes(from, to);
    else this.#no(from, to);
  }

  flush(): void {
    if (this.#count > 0) this.#write(this.#last);
    this.#count = 0;
  }

  #yes(from: bigint, to: bigint): void {
    if (this.#count > 0 && from - this.#last > LONGEST_GAP_NS) this.flush();
    if (this.#count === 0) this.#first = to;
    this.#count++;
    this.#last = from;
    this.#denied = false;
    // The first of a span at once: the one stale answer after a pause is the one that counts.
    if (this.#count === 1 || from - this.#written >= FLUSH_NS) this.#write(from);
  }

  #no(from: bigint, to: bigint): void {
    this.flush();
    if (this.#denied) return;
    this.#denied = true;
    this.#emit({ ev: "not-held", token: `${this.term.token}`, from: `${from}`, to: `${to}` });
  }

  #write(at: bigint): void {
    this.#written = at;
    const span = { from: `${this.#first}`, to: `${this.#last}`, n: this.#count };
    this.#emit({ ev: "span", token: `${this.term.token}`, ...span });
  }
}

export async function probe(options: ProbeOptions): Promise<void> {
  const { election, signal, everyMs = 2 } = options;
  const emit = (event: object): void =>
    options.write(JSON.stringify({ ...event, t: `${process.hrtime.bigint()}` }));
  const inc = election.candidate;
  emit({ ev: "hello", pid: process.pid, inc, el: election.name, cand: inc, ttl: election.timing.ttlMs });
  const watches: Watch[] = [];
  const timer = setInterval(() => watches.forEach((watch) => watch.ask()), everyMs);
  const off = election.on("ended", ({ term, end }) => {
    emit({ ev: "stopped", token: `${term.token}`, why: end.reason });
  });
  const work = async (term: Term): Promise<void> => {
    emit({ ev: "leading", token: `${term.token}` });
    const watch = new Watch(term, emit);
    watch.ask();
    watches.push(watch);
    if (watches.length > MOST_TERMS) watches.shift()?.flush();
    await Promise.all([options.work?.(term), aborted(term.signal)]);
  };
  try {
    await election.run(work, { signal });
    await election.close();
    watches.forEach((watch) => watch.ask());
  } finally {
    clearInterval(timer);
    off();
  }
  emit({ ev: "bye" });
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
