/**
 * A map whose unused entries are evicted. Names are unbounded (a lock for each
 * order or customer), so entries unused for an hour are removed.
 */
import type { Clock } from "../seam/clock.js";

/** Far longer than any lease: forgetting an entry costs at most one more wait. */
const UNUSED_MS = 3_600_000;
/** Below this many entries nothing is evicted. */
const FEW = 1_024;

interface Kept<V> {
  readonly value: V;
  usedAt: number;
}

export class ExpiringMap<V> {
  readonly #clock: Clock;
  readonly #inUse: (value: V) => boolean;
  readonly #kept = new Map<string, Kept<V>>();
  #sweepAt = FEW;

  /** `inUse`: entries that are never evicted. */
  constructor(clock: Clock, inUse: (value: V) => boolean = () => false) {
    this.#clock = clock;
    this.#inUse = inUse;
  }

  get(key: string): V | undefined {
    const kept = this.#kept.get(key);
    if (kept !== undefined) kept.usedAt = this.#clock.now();
    return kept?.value;
  }

  set(key: string, value: V): void {
    this.#kept.set(key, { value, usedAt: this.#clock.now() });
    if (this.#kept.size >= this.#sweepAt) this.#sweep();
  }

  delete(key: string): void {
    this.#kept.delete(key);
  }

  clear(): void {
    this.#kept.clear();
  }

  *values(): Generator<V, void, undefined> {
    for (const { value } of this.#kept.values()) yield value;
  }

  get size(): number {
    return this.#kept.size;
  }

  /** Runs so seldom that each insertion costs a check of about two entries, however many there are. */
  #sweep(): void {
    const before = this.#clock.now() - UNUSED_MS;
    for (const [key, { value, usedAt }] of this.#kept) {
      if (usedAt < before && !this.#inUse(value)) this.#kept.delete(key);
    }
    this.#sweepAt = Math.max(FEW, 2 * this.#kept.size);
  }
}
