/** From a campaign to the beginning of a term: what is granted is confirmed, or given back. */
import { confirm, withdraw } from "../law/confirm.js";
import type { Confirming } from "../law/confirm.js";
import type { Deadline } from "../law/deadline.js";
import { releaseHold } from "../law/release.js";
import { untilAborted } from "../kit/wait.js";
import type { Hold } from "../seam/backend.js";
import type { Operators } from "./operators.js";

/** What an aborted campaign still wins is given back; nobody waits for that but `close()`. */
export async function granted(
  campaign: Promise<Hold | null>,
  candidate: Confirming & { track<T>(promise: Promise<T>): Promise<T> },
  signal: AbortSignal,
): Promise<Hold | null> {
  try {
    return await untilAborted(signal, campaign);
  } catch (error) {
    if (signal.aborted) void candidate.track(withdraw(campaign, candidate));
    throw error;
  }
}

/**
 * {@link confirm}, and at the same time a look whether the election is paused:
 * then what was granted is given back and no term begins.
 */
export async function admit(
  hold: Hold,
  candidate: Confirming,
  operators: Operators | undefined,
  signal: AbortSignal,
): Promise<Deadline | null> {
  const refused = operators?.refuseGrant(signal);
  refused?.catch(() => {});
  const deadline = await confirm(hold, candidate, signal);
  if (deadline === null || refused === undefined) return deadline;
  try {
    if (!(await refused))
      return deadline.remainingMs() > 0 ? deadline : await confirm(hold, candidate, signal);
  } catch (error) {
    await releaseHold(hold, candidate, 1);
    throw error;
  }
  await releaseHold(hold, candidate, 1);
  return null;
}
