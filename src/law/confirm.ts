/**
 * From a grant to a term. What the store granted may be stale by the time its
 * answer is here, or have a lower token than one seen already: then it is
 * released and no term begins.
 */
import { ConclaveError } from "../kit/errors.js";
import { StopSource } from "../kit/stop.js";
import { bounded } from "../kit/wait.js";
import type { Hold } from "../seam/backend.js";
import { Deadline } from "./deadline.js";
import { releaseHold } from "./release.js";
import type { Releasing } from "./release.js";
import type { TokenFloor } from "./token-floor.js";

/** A candidate, as far as a grant concerns it. */
export interface Confirming extends Releasing {
  readonly floor: TokenFloor;
}

/**
 * The deadline of the term that may begin; `null`: the lease is lost already.
 * Ownership must be known to hold *now*, not when it was granted: the answer may
 * have been long on its way, the machine may have slept, the caller may have
 * changed its mind.
 */
export async function confirm(
  hold: Hold,
  candidate: Confirming,
  signal: AbortSignal,
): Promise<Deadline | null> {
  const { clock, timing, floor } = candidate;
  // A store that rounds the lease up lets challengers wait longer, on clocks that may run faster: the margin is a share.
  const marginMs = timing.marginMs * Math.max(1, hold.ttlMs / timing.ttlMs);
  try {
    signal.throwIfAborted();
    floor.check(hold.token);
    const deadline = new Deadline(clock, marginMs, hold.asked, hold.ttlMs);
    if (deadline.remainingMs() > 0) return deadline;
    const answer = await bounded(clock, timing.attemptMs, signal, "confirming", (s) =>
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
    await releaseHold(hold, candidate, 1);
    throw error;
  }
}

/** Of a campaign that nobody waits for any more: what it wins is released. Ends in the time of one attempt. */
export async function withdraw(campaign: Promise<Hold | null>, candidate: Confirming): Promise<void> {
  const { clock, timing } = candidate;
  const release = async (): Promise<void> => {
    const hold = await campaign;
    if (hold !== null) await releaseHold(hold, candidate, 1);
  };
  await bounded(clock, timing.attemptMs, new StopSource(), "withdrawing", release).catch(() => {});
}
