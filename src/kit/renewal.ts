/**
 * The renewal loop: asks to extend a lease, a little early; asks again soon
 * after a failure, later with every further one. The only place that paces
 * renewals, whoever keeps the lease.
 */
import type { Clock, Timer } from "../seam/clock.js";
import { StopSource } from "./stop.js";
import { bounded } from "./wait.js";

export interface RenewalOptions<Answer> {
  readonly clock: Clock;
  /** Pause between renewals. */
  readonly renewMs: number;
  /** Longest a single attempt may take. */
  readonly attemptMs: number;
  /** Milliseconds until the lease is of no use any more; attempts are cut so that another one fits in. */
  leftMs(): number;
  /** Asks the store. Rejects = not known. */
  ask(signal: AbortSignal): Promise<Answer>;
  /**
   * Takes an answer that came in time. Returns the time from which the next renewal is due, or
   * `undefined` when there is nothing left to renew.
   */
  answered(answer: Answer, latencyMs: number): number | undefined;
  /** An attempt failed. `false`: no other shall follow. */
  failed(error: unknown, latencyMs: number): boolean;
}

export class RenewalLoop<Answer> {
  readonly #options: RenewalOptions<Answer>;
  readonly #stop = new StopSource();
  #timer: Timer | undefined;

  constructor(options: RenewalOptions<Answer>) {
    this.#options = options;
  }

  /** The lease was extended by a request sent at this time: the next one is due a pause later. */
  start(askedAt: number): void {
    this.#renewAt(askedAt + this.#pace(), 0);
  }

  /** For good: nothing is asked after this, and what is under way is given up. */
  stop(): void {
    this.#stop.stop();
    this.#timer?.cancel();
  }

  #renewAt(at: number, failures: number): void {
    if (this.#stop.aborted) return;
    this.#timer?.cancel();
    const delayMs = Math.max(0, at - this.#options.clock.now());
    this.#timer = this.#options.clock.after(delayMs, () => void this.#renew(failures));
  }

  async #renew(failures: number): Promise<void> {
    const { clock, attemptMs } = this.#options;
    const leftMs = this.#options.leftMs();
    if (leftMs <= 0 || this.#stop.aborted) return;
    const startedAt = clock.now();
    // However the store hangs, at least one more attempt fits into what is left.
    const limitMs = Math.min(attemptMs, Math.max(1, leftMs / 2));
    try {
      const answer = await bounded(clock, limitMs, this.#stop, "renewing", (signal) =>
        this.#options.ask(signal),
      );
      const dueFrom = this.#options.answered(answer, clock.now() - startedAt);
      if (dueFrom === undefined) return;
      // The answer may be to an older question: never ask in a tight loop for that.
      this.#renewAt(Math.max(dueFrom + this.#pace(), clock.now() + this.#pace() / 4), 0);
    } catch (error) {
      if (this.#stop.aborted || !this.#options.failed(error, clock.now() - startedAt)) return;
      this.#renewAt(clock.now() + this.#retry(failures + 1), failures + 1);
    }
  }

  /** A little earlier each time, so that many holders do not fall into step. */
  #pace(): number {
    return this.#options.renewMs * (0.9 + 0.1 * this.#options.clock.random());
  }

  /** Sooner than a renewal, later with every failure, several times before the deadline. */
  #retry(failures: number): number {
    const { renewMs, clock } = this.#options;
    return Math.min(renewMs / 2, (renewMs / 16) * 2 ** Math.min(failures, 4)) * (0.75 + 0.5 * clock.random());
  }
}
