/**
 * What is known of each name, for as long as anybody asks about it. Locks may be
 * named after orders or customers: without an end, their number is one.
 */
import type { Clock } from "../seam/clock.js";

/** Far longer than any lease: what is forgotten is only waited for anew. */
const UNUSED_MS = 3_600_000;
/** Below this many it is not worth looking. */
const FEW = 1_024;

interface Kept<V> {
  readonly value: V;
  usedAt: number;
}

export class Recent<V> {
  readonly #clock: Clock;
  readonly #inUse: (value: V) => boolean;
  readonly #kept = new Map<string, Kept<V>>();
  #sweepAt = FEW;

  /** `inUse`: what is not forgotten however long ago it was asked for. */
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

  /** Seldom enough that each name pays for a look at two others, however many there are. */
  #sweep(): void {
    const before = this.#clock.now() - UNUSED_MS;
    for (const [key, { value, usedAt }] of this.#kept) {
      if (usedAt < before && !this.#inUse(value)) this.#kept.delete(key);
    }
    this.#sweepAt = Math.max(FEW, 2 * this.#kept.size);
  }
}
