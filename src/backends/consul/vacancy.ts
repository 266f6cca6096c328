/**
 * A free lock that is left to others for a while: to the heir that the last leader
 * named, or to those that are preferred. Each waits by its own clock, once for
 * each time that the key became free; nothing but who leads next depends on it.
 */
import { isHeir } from "../../kit/heir.js";
import type { Clock } from "../../seam/clock.js";
import type { CandidateLock } from "./candidate-lock.js";
import type { KeyValue } from "./client.js";
import { heirIn } from "./envelope.js";

export interface VacancyOptions {
  readonly clock: Clock;
  readonly candidateLock: CandidateLock;
  /** Without waiting nobody is preferred: either the lock is free or it is not. */
  readonly wait: boolean;
  readonly standBackMs: () => number;
}

export class Vacancy {
  readonly #options: VacancyOptions;
  /** The version of the key in which it is free, and until when others go first. */
  #free: { readonly modifyIndex: bigint; readonly until: number } | undefined;

  constructor(options: VacancyOptions) {
    this.#options = options;
  }

  /** How much longer this candidate leaves the free key to others. */
  leaveMs(kv: KeyValue | undefined): number {
    const modifyIndex = kv?.modifyIndex ?? 0n;
    const now = this.#options.clock.now();
    if (this.#free?.modifyIndex !== modifyIndex) this.#free = { modifyIndex, until: now + this.#others(kv) };
    return this.#free.until - now;
  }

  #others(kv: KeyValue | undefined): number {
    const { candidateLock, wait, standBackMs } = this.#options;
    const heir = kv === undefined ? undefined : heirIn(kv);
    if (heir === undefined) return wait ? Math.max(0, standBackMs()) : 0;
    return isHeir(candidateLock.candidate, heir.candidate) ? 0 : heir.forMs;
  }
}
