/**
 * Locks that nobody owns any more and that may still be in the store, or may yet
 * be granted: of terms that ran out, of requests without an answer. They are
 * released as soon as they may be, and tried again as long as their session lives.
 */
import { Backoff } from "../../kit/backoff.js";
import type { Clock, Timer } from "../../seam/clock.js";
import type { CallLimits } from "./client.js";
import type { CandidateLock } from "./candidate-lock.js";

/** A request without an answer may arrive this much later; its lock is released again that long. */
const LATE_MS = 30_000;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5_000;

interface Orphan {
  /** Not released before this instant: until then its leader may have believed that it led. */
  readonly from: number;
  /** Its lock may still be granted until this instant. */
  readonly until: number;
}

export interface OrphanedLocksOptions {
  readonly clock: Clock;
  /** Of every request. */
  readonly limits: CallLimits;
  /** Nothing of it is left in the store. */
  removed(candidateLock: CandidateLock): void;
}

export class OrphanedLocks {
  readonly #options: OrphanedLocksOptions;
  readonly #orphans = new Map<CandidateLock, Orphan>();
  readonly #backoff: Backoff;
  #sweeping: Promise<void> | undefined;
  #timer: Timer | undefined;
  #timerAt = Infinity;
  #closed = false;

  constructor(options: OrphanedLocksOptions) {
    this.#options = options;
    this.#backoff = new Backoff(options.clock, FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
  }

  add(candidateLock: CandidateLock, from = -Infinity): void {
    const { clock } = this.#options;
    this.#orphans.set(candidateLock, { from, until: candidateLock.unanswered ? clock.now() + LATE_MS : 0 });
    this.#backoff.reset();
    this.#sweepAfter(from === -Infinity ? this.#backoff.next() : from - clock.now());
  }

  has(candidateLock: CandidateLock): boolean {
    return this.#orphans.has(candidateLock);
  }

  delete(candidateLock: CandidateLock): void {
    this.#orphans.delete(candidateLock);
  }

  /** Whether somebody may still believe that it leads by one of them. */
  get waiting(): boolean {
    const now = this.#options.clock.now();
    return [...this.#orphans.values()].some(({ from }) => from > now);
  }

  get size(): number {
    return this.#orphans.size;
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
    this.#orphans.clear();
  }

  /** Releases those that may be released. Never rejects. */
  sweep(): Promise<void> {
    this.#sweeping ??= this.#sweep().finally(() => {
      this.#sweeping = undefined;
      if (this.#orphans.size > 0) this.#sweepAfter(this.#pauseMs());
    });
    return this.#sweeping;
  }

  /** Until the first one may be released, or until another try. */
  #pauseMs(): number {
    const now = this.#options.clock.now();
    const due = [...this.#orphans.values()].some(({ from }) => from <= now);
    if (due) return this.#backoff.next();
    return Math.min(...[...this.#orphans.values()].map(({ from }) => from)) - now;
  }

  #sweepAfter(delayMs: number): void {
    const { clock } = this.#options;
    const at = clock.now() + Math.max(0, delayMs);
    if (this.#closed || at >= this.#timerAt) return;
    this.#timer?.cancel();
    this.#timerAt = at;
    this.#timer = clock.after(at - clock.now(), () => {
      this.#timerAt = Infinity;
      void this.sweep();
    });
  }

  async #sweep(): Promise<void> {
    const { clock, limits, removed } = this.#options;
    const due = [...this.#orphans].filter(([, { from }]) => from <= clock.now());
    for (const [candidateLock] of due) {
      try {
        await candidateLock.vacate(limits);
      } catch {
        continue; // tried again
      }
      if (clock.now() < (this.#orphans.get(candidateLock)?.until ?? 0)) continue;
      this.#orphans.delete(candidateLock);
      removed(candidateLock);
    }
  }
}
