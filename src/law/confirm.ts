/**
 * From a hold to office. What the store granted may be stale by the time its
 * answer is here, or older than what was seen already: then it is given back and
 * no term begins.
 */
import type { Hold } from "../seam/backend.js";
import type { Clock } from "../seam/clock.js";
import { Deadline } from "./deadline.js";
import { ConclaveError, describe } from "../kit/errors.js";
import type { Reports } from "./reports.js";
import { Halt } from "../kit/stop.js";
import type { Timing } from "./timing.js";
import type { TokenFloor } from "./token-floor.js";
import { bounded } from "../kit/wait.js";

export class Admission {
  readonly #clock: Clock;
  readonly #timing: Timing;
  readonly #events: Reports;
  readonly #floor: TokenFloor;

  constructor(clock: Clock, timing: Timing, events: Reports, floor: TokenFloor) {
    this.#clock = clock;
    this.#timing = timing;
    this.#events = events;
    this.#floor = floor;
  }

  /**
   * Ownership must be known to hold *now*, not when it was granted: the answer
   * may have been long on its way, the machine may have slept, the caller may
   * have changed its mind.
   */
  async confirm(hold: Hold, signal: AbortSignal): Promise<Deadline | null> {
    const { attemptMs, ttlMs } = this.#timing;
    // A store that rounds the lease up lets challengers wait longer, on clocks that may run faster: the margin is a share.
    const marginMs = this.#timing.marginMs * Math.max(1, hold.ttlMs / ttlMs);
    try {
      signal.throwIfAborted();
      this.#floor.check(hold.token);
      const deadline = new Deadline(this.#clock, marginMs, hold.asked, hold.ttlMs);
      if (deadline.remainingMs() > 0) return deadline;
      const answer = await bounded(this.#clock, attemptMs, signal, "confirming", (s) =>
        hold.renew({ signal: s }),
      );
      signal.throwIfAborted();
      if (answer === "lost") return null;
      deadline.extend(answer.asked, hold.ttlMs);
      if (deadline.remainingMs() > 0) return deadline;
      throw new ConclaveError(
        "timeout",
        "the lease was over before the store's answer came: the store is slow, or this machine slept; if it happens again raise ttlMs",
      );
    } catch (error) {
      await this.giveBack(hold);
      throw error;
    }
  }

  /** Of a campaign that nobody waits for any more: what it wins is given back. Ends in the time of one attempt. */
  async withdraw(campaign: Promise<Hold | null>): Promise<void> {
    const giveBack = async (): Promise<void> => {
      const hold = await campaign;
      if (hold !== null) await this.giveBack(hold);
    };
    await bounded(this.#clock, this.#timing.attemptMs, new Halt(), "withdrawing", giveBack).catch(() => {});
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
