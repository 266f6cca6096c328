/**
 * Moving a running fleet from one store to another without a moment of two
 * leaders: a candidate leads only while it holds the lease in both stores.
 *
 * Whoever uses the old store alone is excluded by the old store, whoever uses the
 * new one alone by the new one. So a fleet moves in three rolling updates:
 *
 * 1. from `old` to `both(next, old)`: tokens and observers are still the old store's;
 * 2. to `both(old, next)`: tokens and observers are the new store's;
 * 3. to `next`.
 *
 * The next update begins when every replica has finished the one before. While
 * it lasts both stores have to be up: losing one ends the term.
 */
import { ConclaveError } from "../kit/errors.js";
import { systemClock } from "../kit/clock.js";
import { bounded, sleep } from "../kit/wait.js";
import { StopSource } from "../kit/stop.js";
import type { Clock } from "../seam/clock.js";
import type {
  Backend,
  CallOptions,
  CampaignOptions,
  Candidacy,
  Claim,
  Eviction,
  Forgotten,
  Guarantees,
  Hold,
  Leader,
  Listing,
  ObserveOptions,
  TimingDefaults,
  Wish,
} from "../seam/backend.js";
import type { RecordStore } from "../seam/table.js";
import { BothHold } from "./hold.js";
import { KeptHold } from "./keep.js";

/** Options of {@link both}. */
export interface BothOptions {
  /** Default: the system's clock. */
  readonly clock?: Clock;
}

/**
 * A backend that leads only while it holds the lease in `a` *and* in `b`. Token,
 * records, list and what observers see are those of `b`. Closing it closes both.
 *
 * If tokens of `b` are lower than those of `a` (revisions of etcd or Kubernetes
 * after the millisecond tokens of files, PostgreSQL or Redis), fences that have
 * seen the higher ones refuse the new leader until they are reset.
 */
export function both(a: Backend, b: Backend, options: BothOptions = {}): Backend {
  return new BothBackend(a, b, options.clock ?? systemClock);
}

class BothBackend implements Backend {
  readonly name: string;
  readonly guarantees: Guarantees;
  readonly timing: TimingDefaults | undefined;
  readonly records: RecordStore | undefined;
  readonly list?: (options: CallOptions) => Promise<Listing>;
  readonly release?: (claim: Claim, options: CallOptions) => Promise<"released" | "not-held">;
  readonly forget?: (election: string, options: CallOptions) => Promise<Forgotten>;
  readonly evict?: (claim: Claim, options: CallOptions) => Promise<Eviction | "not-held">;
  readonly #a: Backend;
  readonly #b: Backend;
  readonly #clock: Clock;
  /** In which order leases are taken: the same whatever the order of the arguments, or two candidates would wait for each other. */
  readonly #order: readonly [Backend, Backend];

  constructor(a: Backend, b: Backend, clock: Clock) {
    this.#a = a;
    this.#b = b;
    this.#clock = clock;
    this.#order = b.name < a.name ? [b, a] : [a, b];
    this.name = `${a.name}-and-${b.name}`;
    this.guarantees = guaranteesOf(a.guarantees, b.guarantees);
    this.timing = b.timing;
    this.records = b.records;
    if (b.list) this.list = (call) => b.list!(call);
    // Whoever succeeds needs both leases, and the one in `b` is waited out.
    if (b.evict) this.evict = (claim, call) => b.evict!(claim, call);
    if (a.forget && b.forget) this.forget = (election, call) => forgetBoth(a, b, election, call);
    if (b.release) this.release = (claim, call) => this.#releaseClaim(claim, call);
  }

  async campaign(candidacy: Candidacy, options: CampaignOptions): Promise<Hold | null> {
    const { wait, signal } = options;
    const [first] = this.#order;
    for (;;) {
      const hold = await first.campaign(candidacy, { wait, signal, ...this.#floor(first, options) });
      if (hold === null) return null;
      const granted = await this.#second(hold, candidacy, options);
      if (granted !== "again") return granted;
      await sleep(this.#clock, this.#clock.random() * candidacy.retryMs, signal);
      signal.throwIfAborted();
    }
  }

  observe(election: string, options: ObserveOptions): AsyncIterable<Leader | null> {
    return this.#b.observe(election, options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#a, this.#b].map((backend) => backend[Symbol.asyncDispose]()));
  }

  /** With the first lease in hand and kept: the second one, `null` if that is held, or "again" if the first was lost. */
  async #second(hold: Hold, candidacy: Candidacy, options: CampaignOptions): Promise<Hold | null | "again"> {
    const { wait, signal } = options;
    const [, second] = this.#order;
    // Whoever has the first lease has let others pass already.
    const standing = { ...candidacy, standBackMs: undefined };
    const kept = new KeptHold(this.#clock, hold, candidacy);
    let granted: Hold | null = null;
    try {
      const ask = (stop: AbortSignal): Promise<Hold | null> =>
        second.campaign(standing, { wait, signal: stop, ...this.#floor(second, options) });
      granted = await kept.during(signal, (stop) => this.#patiently(candidacy, stop, ask));
    } catch (error) {
      kept.stop();
      await this.#giveBack(hold, candidacy);
      if (!signal.aborted && (kept.lost.aborted || error === OUT_OF_PATIENCE)) return "again";
      throw error;
    }
    kept.stop();
    if (granted !== null && !kept.lost.aborted) {
      const token = second === this.#b ? granted.token : hold.token;
      return new BothHold(hold, kept.extension, granted, token);
    }
    if (granted !== null) await this.#giveBack(granted, candidacy);
    await this.#giveBack(hold, candidacy);
    return granted === null ? null : "again";
  }

  /**
   * Two stores of one name have no order of their own: in the second update one
   * candidate may hold `a` and wait for `b` while another does the reverse. One
   * of them gives up first.
   */
  #patiently<T>(
    { ttlMs }: Candidacy,
    signal: AbortSignal,
    ask: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    if (this.#a.name !== this.#b.name) return ask(signal);
    const limitMs = ttlMs * (1 + this.#clock.random());
    return bounded(this.#clock, limitMs, signal, "waiting for the second store", ask).catch(
      (error: unknown) => {
        throw !signal.aborted && error instanceof ConclaveError && error.code === "timeout"
          ? OUT_OF_PATIENCE
          : error;
      },
    );
  }

  /** What a campaign meets counts in the store that the tokens come from. */
  #floor(backend: Backend, { seen }: CampaignOptions): Pick<CampaignOptions, "seen"> {
    return backend === this.#b ? { seen } : {};
  }

  /** If it fails the lease runs out by itself. */
  async #giveBack(hold: Hold, { attemptMs }: Candidacy): Promise<void> {
    const release = (signal: AbortSignal): Promise<void> => hold.release({ signal });
    await bounded(this.#clock, attemptMs, new StopSource(), "releasing", release).catch(() => {});
  }

  /** The token is that of `b`; in `a` the same candidate's leadership is given back, whatever its token is. */
  async #releaseClaim(claim: Claim, options: CallOptions): Promise<"released" | "not-held"> {
    const answer = await this.#b.release!(claim, options);
    if (answer === "not-held" || this.#a.release === undefined) return answer;
    const { election, candidate } = claim;
    const look = { ...options, pollMs: LOOK_MS, attemptMs: LOOK_MS };
    for await (const leader of this.#a.observe(election, look)) {
      if (leader?.candidate === candidate)
        await this.#a.release({ election, candidate, token: leader.token }, options);
      break;
    }
    return answer;
  }
}

const OUT_OF_PATIENCE = new ConclaveError(
  "timeout",
  "another candidate holds the lease in the second store and waits for the first",
);
const LOOK_MS = 2_000;

const EXCLUSION = ["best-effort", "single-primary", "linearizable"] as const;

const WISHES: readonly Wish[] = ["heir", "stand-back"];

/** While the fleet moves some candidates know only one of the stores: the weaker promise of the two is kept. */
function guaranteesOf(a: Guarantees, b: Guarantees): Guarantees {
  const weaker = Math.min(EXCLUSION.indexOf(a.exclusion), EXCLUSION.indexOf(b.exclusion));
  return {
    exclusion: EXCLUSION[weaker] ?? "best-effort",
    expiry: b.expiry,
    token: b.token,
    succession: "unordered",
    honours: WISHES.filter((wish) => [a, b].every(({ honours = WISHES }) => honours.includes(wish))),
    ttl: { minMs: Math.max(a.ttl.minMs, b.ttl.minMs), stepMs: Math.max(a.ttl.stepMs, b.ttl.stepMs) },
  };
}

/** Nothing is removed from the second store before the first one has nothing in use. */
async function forgetBoth(a: Backend, b: Backend, election: string, call: CallOptions): Promise<Forgotten> {
  const first = await a.forget!(election, call);
  if (first === "in-use") return first;
  const second = await b.forget!(election, call);
  return second === "removed" ? first : second;
}
