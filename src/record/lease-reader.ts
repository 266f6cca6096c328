/**
 * Reads the record of an election, and remembers for all campaigns and observers
 * of this process what changed when: a lease that is not timed by its store ends
 * when its record has not changed for long enough.
 */
import { ExpiringMap } from "../kit/expiring-map.js";
import { bounded } from "../kit/wait.js";
import type { Clock } from "../seam/clock.js";
import type { Entry, RecordStore } from "../seam/table.js";
import { observed, wentBack } from "./lease.js";
import type { LastChange, LeaseRecord } from "./lease.js";

export class LeaseReader {
  /** The newest version an observer was shown: a later call does not show an older one. */
  readonly shown: ExpiringMap<bigint>;
  /** What this process saw change, and when. Kept over failed calls: an outage must not restart the wait. */
  readonly #seen: ExpiringMap<LastChange>;
  readonly #clock: Clock;
  readonly #leases: RecordStore<LeaseRecord>;

  constructor(clock: Clock, leases: RecordStore<LeaseRecord>) {
    this.#clock = clock;
    this.#leases = leases;
    this.#seen = new ExpiringMap(clock);
    this.shown = new ExpiringMap(clock);
  }

  lastChange(key: string): LastChange | undefined {
    return this.#seen.get(key);
  }

  async read(key: string, attemptMs: number, signal: AbortSignal): Promise<Entry<LeaseRecord> | null> {
    // Known before the question: what is learned while it is under way may be newer than its answer.
    const known = newer(this.#seen.get(key)?.version, this.shown.get(key));
    const entry = await bounded(this.#clock, attemptMs, signal, `reading election "${key}"`, (s) =>
      this.#leases.read(key, { signal: s }),
    );
    if (entry === null) return null;
    const certain = wentBack(entry, known);
    if (certain) this.shown.delete(key);
    const seen = observed(this.#seen.get(key), entry, this.#clock.now(), attemptMs, certain);
    this.#seen.set(key, seen);
    return entry;
  }
}

function newer(a = -1n, b = -1n): bigint {
  return a > b ? a : b;
}
