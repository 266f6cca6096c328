/**
 * From a hold to office. What the store granted may be stale by the time its
 * answer is here, or older than what was seen already: then it is given back and
 * no term begins.
 */
import type { Hold } from "./backend.js";
import type { Clock } from "./clock.js";
import { Deadline, readClocks } from "./deadline.js";
import type { Reading } from "./deadline.js";
import { ConclaveError, describe } from "./errors.js";
import type { Emitter } from "./events.js";
import { Halt } from "./halt.js";
import type { Timing } from "./timing.js";
import { bounded } from "./waiting.js";

export class Admission {
  readonly #clock: Clock;
  readonly #timing: Timing;
  readonly #events: Emitter;
  /** Highest token of any leader seen, and of our own terms: what is granted must be newer. */
  #seenToken = -1n;
  #ownToken = -1n;

  constructor(clock: Clock, timing: Timing, events: Emitter) {
    this.#clock = clock;
    this.#timing = timing;
    this.#events = events;
  }

  /** Some leader has this token. */
  seen(token: bigint): void {
    if (token > this.#seenToken) this.#seenToken = token;
  }

  /** A term of our own begins with this token. */
  admitted(token: bigint): void {
    this.#ownToken = token;
  }

  /**
   * Ownership must be known to hold *now*, not when it was granted: the answer
   * may have been long on its way, the machine may have slept, the caller may
   * have changed its mind.
   */
  async confirm(hold: Hold, base: Reading, signal: AbortSignal): Promise<Deadline | null> {
    const { attemptMs, ttlMs } = this.#timing;
    // A store that rounds the lease up lets challengers wait longer, on clocks that may run faster: the margin is a share.
    const marginMs = this.#timing.marginMs * Math.max(1, hold.ttlMs / ttlMs);
    try {
      signal.throwIfAborted();
      this.#assertNewer(hold.token);
      const deadline = new Deadline(this.#clock, marginMs, base);
      deadline.extend(hold.askedAt, hold.ttlMs, base);
      if (deadline.remainingMs() > 0) return deadline;
      const fresh = readClocks(this.#clock);
      const answer = await bounded(this.#clock, attemptMs, signal, "confirming", (s) =>
        hold.renew({ signal: s }),
      );
      signal.throwIfAborted();
      if (answer === "lost") return null;
      // A lease shared by many may answer with a question older than ours: a sleep since then must be seen too.
      const since = fresh.now <= answer.askedAt ? fresh : base;
      const confirmed = new Deadline(this.#clock, marginMs, since);
      confirmed.extend(answer.askedAt, hold.ttlMs, since);
      if (confirmed.remainingMs() > 0) return confirmed;
      throw new ConclaveError("timeout", "the store answers more slowly than the lease lasts; raise ttlMs");
    } catch (error) {
      await this.giveBack(hold);
      throw error;
    }
  }

  #assertNewer(token: bigint): void {
    // Equal to one seen may be this very grant, seen by our own observer before it came back to us.
    if (token > this.#ownToken && token >= this.#seenToken) return;
    const newest = this.#ownToken > this.#seenToken ? this.#ownToken : this.#seenToken;
    throw new ConclaveError(
      "token-regression",
      `the store granted token ${token}, but ${newest} was seen before: it has lost its memory (restored, wiped or failed over). ` +
        "Not leading: resources would refuse this token. Make sure that fenced resources agree, then restart the candidates.",
    );
  }

  async giveBack(hold: Hold): Promise<void> {
    const never = new Halt();
    try {
      await bounded(this.#clock, this.#timing.attemptMs, never, "releasing", (signal) =>
        hold.release({ signal }),
      );
    } catch (error) {
      this.#events.log(
        "warn",
        `giving back token ${hold.token} failed: ${describe(error)}; it runs out by itself`,
      );
    }
  }
}
