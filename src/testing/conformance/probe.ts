/**
 * The program of a candidate under test: it stands forever, asks `term.held`
 * every two milliseconds and writes down what it was told, stamped with the
 * machine's monotonic clock, which all processes of a machine share.
 *
 * Every line is one JSON object with `ev`, `t` (nanoseconds, as a string), `el`
 * (the election) and `inc` (the candidate's id, new at every start):
 *
 *   hello    {pid, ttl}                 the process has begun
 *   leading  {token}                    a term has begun
 *   span     {token, from, to, n}       `n` times in a row `held` was true: the first answer was there
 *                                       at `from`, the last question was asked at `to`
 *   not-held {token, from, to}          `held` was false, asked and answered in between; the first of many
 *   stopped  {token, why}               the term's end was reported
 *   bye      {}                         the election is closed
 *
 * A silence of the process breaks a span, so a pause can be seen in it.
 */
import type { Election } from "../../election/election.js";
import type { Term } from "../../api/term.js";

export interface ProbeOptions {
  readonly election: Election;
  readonly write: (line: string) => void;
  /** Ends the candidate in good order. */
  readonly signal: AbortSignal;
  /** Default 2 ms. */
  readonly everyMs?: number;
  /** What is asked. Default: `term.held`. */
  readonly held?: (term: Term) => boolean;
  /** Done in each term besides, until `term.signal` aborts. */
  readonly work?: (term: Term) => Promise<void>;
}

/** Two true answers further apart than this belong to two spans. */
const LONGEST_GAP_NS = 20_000_000n;
/** What a killed process has not written is lost: at most this much of the end of a span. */
const FLUSH_NS = 50_000_000n;
/** A term that has ended is asked this much longer: one that says "yes" again must be seen. */
const AFTERMATH_NS = 1_000_000_000n;

/** The observations of one term. */
class Watch {
  readonly term: Term;
  readonly #emit: (event: object) => void;
  readonly #held: (term: Term) => boolean;
  #first = 0n;
  #last = 0n;
  #count = 0;
  #written = 0n;
  #told = 0;
  #deniedAt: bigint | undefined;

  constructor(term: Term, emit: (event: object) => void, held: (term: Term) => boolean) {
    this.term = term;
    this.#emit = emit;
    this.#held = held;
  }

  ask(): void {
    const from = process.hrtime.bigint();
    const held = this.#held(this.term);
    const to = process.hrtime.bigint();
    if (held) this.#yes(from, to);
    else this.#no(from, to);
  }

  /** Long enough over to be forgotten. */
  get stale(): boolean {
    return this.#deniedAt !== undefined && process.hrtime.bigint() - this.#deniedAt > AFTERMATH_NS;
  }

  flush(): void {
    if (this.#count > this.#told) this.#write(this.#last);
    this.#count = this.#told = 0;
  }

  #yes(from: bigint, to: bigint): void {
    if (this.#count > 0 && from - this.#last > LONGEST_GAP_NS) this.flush();
    if (this.#count === 0) this.#first = to;
    this.#count++;
    this.#last = from;
    this.#deniedAt = undefined;
    // The first of a span at once: the one stale answer after a pause is the one that counts.
    if (this.#count === 1 || from - this.#written >= FLUSH_NS) this.#write(from);
  }

  #no(from: bigint, to: bigint): void {
    this.flush();
    if (this.#deniedAt !== undefined) return;
    this.#deniedAt = to;
    this.#emit({ ev: "not-held", token: `${this.term.token}`, from: `${from}`, to: `${to}` });
  }

  #write(at: bigint): void {
    this.#written = at;
    this.#told = this.#count;
    const span = { from: `${this.#first}`, to: `${this.#last}`, n: this.#count };
    this.#emit({ ev: "span", token: `${this.term.token}`, ...span });
  }
}

/** Asks all terms that may still be believed in. Sleeps when there are none, to be cheap by the dozen. */
class Watchman {
  readonly #everyMs: number;
  #watches: Watch[] = [];
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(everyMs: number) {
    this.#everyMs = everyMs;
  }

  add(watch: Watch): void {
    watch.ask();
    this.#watches.push(watch);
    this.#timer ??= setInterval(() => this.ask(), this.#everyMs);
  }

  ask(): void {
    for (const watch of this.#watches) watch.ask();
    this.#watches = this.#watches.filter((watch) => !watch.stale);
    if (this.#watches.length === 0) this.stop();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

export async function probe(options: ProbeOptions): Promise<void> {
  const { election, signal, everyMs = 2, held = (term: Term) => term.held } = options;
  const who = { el: election.name, inc: election.candidate };
  const emit = (event: object): void =>
    options.write(JSON.stringify({ ...event, ...who, t: `${process.hrtime.bigint()}` }));
  emit({ ev: "hello", pid: process.pid, ttl: election.timing.ttlMs });
  const watchman = new Watchman(everyMs);
  const off = election.on("ended", ({ term, end }) => {
    emit({ ev: "stopped", token: `${term.token}`, why: end.reason });
  });
  const work = async (term: Term): Promise<void> => {
    emit({ ev: "leading", token: `${term.token}` });
    watchman.add(new Watch(term, emit, held));
    await Promise.all([options.work?.(term), aborted(term.signal)]);
  };
  try {
    await election.run(work, { signal });
    await election.close();
    watchman.ask();
  } finally {
    watchman.stop();
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
