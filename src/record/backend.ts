/**
 * Any store with compare-and-swap becomes a {@link Backend}: campaign, renewal,
 * expiry, tokens and observation, written once. The store brings three methods.
 */
import type {
  Backend,
  BackendWithRecords,
  CampaignOptions,
  CallOptions,
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
} from "../seam/backend.js";
import type { Entry, RecordStore } from "../seam/table.js";
import type { Clock } from "../seam/clock.js";
import { readClocks, systemClock } from "../kit/clock.js";
import { isConclaveError } from "../kit/errors.js";
import { listing } from "../kit/listing.js";
import { bounded, sleep } from "../kit/wait.js";
import type { RecordBackendOptions } from "./backend-options.js";
import { RecordHold } from "./hold.js";
import type { LeaseRecord } from "./lease.js";
import { acquiring, EVICTED_HOLDER, isFree, decideTakeover, leaderFromRecord, untilSilent } from "./lease.js";
import { forgetLease } from "./forget.js";
import { LeaseReader } from "./lease-reader.js";
import { evictClaim, releaseClaim } from "./release-claim.js";
import { StandBack } from "./stand-back.js";
import { VacatedVersions } from "./vacated-versions.js";
import { UnansweredWrites } from "./unanswered-writes.js";
import { ShownVersions } from "./shown-versions.js";
import { checkedLeases } from "./checked-leases.js";
import { WatchOrTimer } from "./watch-or-timer.js";

/** How often the store is asked whether a holder is certainly dead, where it can tell. */
const ABANDONED_CHECK_MS = 200;
/** Lost races that a single, non-waiting attempt follows before it says that someone else leads. */
const MOST_RACES = 3;

/** Turns any store with compare-and-swap into a {@link Backend}. */
export function recordBackend(options: RecordBackendOptions): BackendWithRecords {
  const backend = new RecordBackend(options);
  leaseStores.set(backend, options.leases);
  return backend;
}

const leaseStores = new WeakMap<Backend, RecordStore<LeaseRecord>>();

/** The store of leases under a backend of this engine, for the conformance suite: it asks the store itself. */
export function leasesOf(backend: Backend): RecordStore<LeaseRecord> | undefined {
  return leaseStores.get(backend);
}

class RecordBackend implements BackendWithRecords {
  readonly name: string;
  readonly guarantees: Guarantees;
  readonly timing: TimingDefaults | undefined;
  readonly records: RecordStore;
  readonly list?: (options: CallOptions) => Promise<Listing>;
  readonly onWarning?: (listener: (message: string) => void) => void;
  readonly #leases: RecordStore<LeaseRecord>;
  readonly #clock: Clock;
  readonly #wakeJitterMs: number;
  readonly #pollJitter: number;
  readonly #reads: LeaseReader;
  /** Versions under which this process gave a leadership back; absent where a version may come again. */
  readonly #vacated: VacatedVersions | undefined;
  readonly #unansweredWrites: UnansweredWrites;
  readonly #close: (() => Promise<void>) | undefined;
  #closed: Promise<void> | undefined;
  /** Keeps `since` unique among our own terms, whatever the wall clock does. */
  #lastSince = 0;

  constructor(options: RecordBackendOptions) {
    this.name = options.name;
    this.guarantees = options.guarantees;
    this.timing = options.timing;
    this.records = options.records;
    this.#leases = checkedLeases(options.leases);
    const { list } = this.#leases;
    if (list) this.list = async (call) => list(call).then(({ names, complete }) => listing(names, complete));
    if (options.onWarning) this.onWarning = options.onWarning;
    this.#clock = options.clock ?? systemClock;
    this.#reads = new LeaseReader(this.#clock, this.#leases);
    this.#vacated = options.uniqueVersions === true ? new VacatedVersions(this.#clock) : undefined;
    this.#unansweredWrites = new UnansweredWrites(this.#clock, this.#leases);
    this.#close = options.close;
    this.#wakeJitterMs = options.wakeJitterMs ?? 0;
    this.#pollJitter = options.pollJitter ?? 0.25;
  }

  async campaign(candidacy: Candidacy, { wait, signal, seen }: CampaignOptions): Promise<Hold | null> {
    const watchOrTimer = new WatchOrTimer(this.#clock, this.#leases, candidacy.election);
    const standBack = new StandBack(this.#clock, candidacy);
    try {
      // On the version that we vacated ourselves, without a look: if it is not the newest, it is refused and we read.
      const vacated = this.#vacated?.take(candidacy);
      if (vacated !== undefined && !standBack.wanted) {
        const hold = await this.#acquire(candidacy, vacated, wait, signal);
        if (hold !== null) return hold;
        signal.throwIfAborted();
      }
      for (let races = 0; ; races++) {
        // The write is conditional on the version that was pushed: if it is not the newest, it is refused and we read.
        const pushed = watchOrTimer.takePushed();
        const entry = isFree(pushed, candidacy.candidate)
          ? pushed
          : await this.#reads.read(candidacy.election, candidacy.attemptMs, signal);
        // Every token the store can still grant is above this version. A grant with this very number comes from a store
        // that went back and counts anew: the leader that had it before may still act, and no fence could tell the two apart.
        // A pushed version may be forged: it is no floor for tokens.
        if (entry !== null && entry !== pushed) seen?.(entry.version + 1n);
        const decided = await this.#decide(entry, candidacy, signal);
        const takeover = wait ? standBack.consider(decided, entry) : decided;
        if (takeover.kind === "open") {
          const hold = await this.#acquire(candidacy, takeover.expected, wait, signal);
          if (hold !== null) return hold;
          if (!wait && races >= MOST_RACES) return null;
          // Someone was faster, or the read was stale: the first time look again at once, then after growing pauses.
          if (races > 0)
            await watchOrTimer.wait(this.#clock.random() * Math.min(races * 20, candidacy.retryMs), signal);
        } else {
          if (!wait) return null;
          races = 0;
          await this.#pause(watchOrTimer, entry, candidacy, takeover.waitMs, signal);
        }
        signal.throwIfAborted();
      }
    } finally {
      watchOrTimer.close();
    }
  }

  async *observe(election: string, options: ObserveOptions): AsyncGenerator<Leader | null, void, undefined> {
    const { signal, pollMs, attemptMs } = options;
    const watchOrTimer = new WatchOrTimer(this.#clock, this.#leases, election);
    let last: Leader | null | undefined;
    const shown = new ShownVersions(this.#clock, this.#reads.shown, election);
    try {
      while (!signal.aborted) {
        const entry = await this.#reads.read(election, attemptMs, signal);
        const seen = this.#reads.lastChange(election);
        if (entry === null || shown.accepts(entry, pollMs)) {
          const leader = leaderFromRecord(entry, seen, pollMs, this.#clock.now());
          if (last === undefined || !sameLeader(last, leader)) yield (last = leader);
        }
        // While someone leads, read again when its lease would have expired. If it
        // is long enough already, this read could not show it (a lagging replica): polling faster would not help.
        const silentIn = last && entry ? untilSilent(entry, seen, pollMs, this.#clock.now()) : 0;
        const poll = this.#pollAfter(pollMs);
        await watchOrTimer.wait(silentIn > 0 ? Math.min(poll, Math.max(1, silentIn)) : poll, signal);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      watchOrTimer.close();
    }
  }

  release(claim: Claim, options: CallOptions): Promise<"released" | "not-held"> {
    return releaseClaim(this.#leases, claim, options);
  }

  evict(claim: Claim, options: CallOptions): Promise<Eviction | "not-held"> {
    return evictClaim(this.#leases, claim, options);
  }

  forget(election: string, options: CallOptions): Promise<Forgotten> {
    return forgetLease({ store: this.#leases, reads: this.#reads, clock: this.#clock }, election, options);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return (this.#closed ??= this.#end());
  }

  async #end(): Promise<void> {
    try {
      await this.#unansweredWrites.settled();
      await this.#leases[Symbol.asyncDispose]();
      await this.records[Symbol.asyncDispose]();
    } finally {
      await this.#close?.();
    }
  }

  async #decide(
    entry: Entry<LeaseRecord> | null,
    candidacy: Candidacy,
    signal: AbortSignal,
  ): Promise<ReturnType<typeof decideTakeover>> {
    const { election, candidate, ttlMs } = candidacy;
    const takeover = decideTakeover(
      entry,
      this.#reads.lastChange(election),
      candidate,
      ttlMs,
      this.#clock.now(),
    );
    if (takeover.kind === "open" || entry === null) return takeover;
    return (await this.#abandoned(entry, candidacy, signal))
      ? { kind: "open", expected: entry.version }
      : takeover;
  }

  async #acquire(
    candidacy: Candidacy,
    expected: bigint | null,
    wait: boolean,
    signal: AbortSignal,
  ): Promise<Hold | null> {
    const { election, attemptMs } = candidacy;
    this.#lastSince = Math.max(this.#clock.wall(), this.#lastSince + 1);
    const record = acquiring(candidacy, this.#lastSince);
    const asked = readClocks(this.#clock);
    let entry: Entry<LeaseRecord> | null;
    try {
      entry = await bounded(this.#clock, attemptMs, signal, `campaigning in election "${election}"`, (s) =>
        this.#leases.write(election, expected, record, { signal: s }),
      );
    } catch (error) {
      // The write may have been carried out. A campaign that waits meets its own record at the next attempt and takes
      // it over; after a single attempt, or an aborted one, nobody would, and the record would block everyone for a ttl.
      if ((signal.aborted || !wait) && mayBeWritten(error))
        this.#unansweredWrites.undo({ key: election, record, expected, attemptMs });
      throw error;
    }
    if (entry === null) return null;
    return new RecordHold(this.#clock, this.#leases, {
      key: election,
      record,
      version: entry.version,
      asked,
      vacated: (version) => this.#vacated?.vacated(election, version),
    });
  }

  /** Sleeps until it is worth looking again: a wake, the end of the lease, the next poll, or a death. */
  async #pause(
    watchOrTimer: WatchOrTimer,
    entry: Entry<LeaseRecord> | null,
    candidacy: Candidacy,
    waitMs: number,
    signal: AbortSignal,
  ): Promise<void> {
    const until = this.#clock.now() + Math.min(Math.max(1, waitMs), this.#pollAfter(candidacy.retryMs));
    for (;;) {
      const left = until - this.#clock.now();
      const slice = this.#leases.abandoned ? Math.min(left, ABANDONED_CHECK_MS) : left;
      const woken = await watchOrTimer.wait(Math.max(0, slice), signal);
      if (woken === "aborted") return;
      if (woken === "watch") {
        if (this.#wakeJitterMs > 0)
          await sleep(this.#clock, this.#clock.random() * this.#wakeJitterMs, signal);
        return;
      }
      if (this.#clock.now() >= until) return;
      if (entry !== null && (await this.#abandoned(entry, candidacy, signal))) return;
    }
  }

  async #abandoned(entry: Entry<LeaseRecord>, candidacy: Candidacy, signal: AbortSignal): Promise<boolean> {
    // A vacancy that is left to an heir has no holder; whoever wrote it may well be gone.
    const { holder } = entry.record;
    if (this.#leases.abandoned === undefined || holder === null || holder === EVICTED_HOLDER) return false;
    try {
      return await bounded(this.#clock, candidacy.attemptMs, signal, "looking for the holder", (s) =>
        this.#leases.abandoned!(candidacy.election, entry.version, { signal: s }),
      );
    } catch {
      return false; // don't-know is not dead
    }
  }

  #pollAfter(retryMs: number): number {
    return retryMs * (1 + this.#clock.random() * this.#pollJitter);
  }
}

/** `invalid` says that nothing was sent. */
function mayBeWritten(error: unknown): boolean {
  return !isConclaveError(error) || error.code !== "invalid";
}

function sameLeader(a: Leader | null, b: Leader | null): boolean {
  if (a === null || b === null) return a === b;
  return a.token === b.token && a.candidate === b.candidate && a.value === b.value;
}
