/** Splits the time between a renewal and the deadline: how long renewals may fail, when SIGTERM and SIGKILL are sent. */
import type { Timing } from "../law/timing.js";
import { formatDuration } from "../terminal/duration.js";
import { UsageError } from "../terminal/failure.js";

export interface StopBudget {
  /** SIGTERM comes this long before SIGKILL. */
  readonly graceMs: number;
  /** SIGKILL comes this long before the deadline, so that at the deadline nothing lives. */
  readonly reserveMs: number;
  /** Where killing takes longer, it begins up to this much earlier. */
  readonly slackMs: number;
  /** A watchdog that has not answered for this long is taken for lost. */
  readonly silenceMs: number;
}

const LONGEST_RESERVE_MS = 100;

/**
 * The grace is taken out of the time that renewals may fail. One renewal, and
 * one try that hangs, must fit in before SIGTERM is sent: else every hiccup of
 * the store would end the command.
 */
export function stopBudgetOf(timing: Timing, asked: number | undefined): StopBudget {
  const { ttlMs, marginMs, renewMs, attemptMs } = timing;
  const deadlineMs = ttlMs - marginMs;
  const reserveMs = Math.min(LONGEST_RESERVE_MS, ttlMs / 50);
  const most = deadlineMs - renewMs - attemptMs - reserveMs;
  if (asked !== undefined && asked > most) {
    const parts = [renewMs, attemptMs, asked, reserveMs];
    const [renew, attempt, grace, reserve] = parts.map(formatDuration);
    const sum = formatDuration(parts.reduce((a, b) => a + b));
    throw new UsageError(
      `--grace does not fit: time to the next renewal ${renew} + one try that hangs ${attempt} + grace ${grace} ` +
        `+ time to kill ${reserve} = ${sum}, but the term ends ${formatDuration(deadlineMs)} after a renewal; ` +
        `${most >= 1 ? `use at most ${formatDuration(Math.floor(most))}, or ` : ""}raise --ttl`,
    );
  }
  const graceMs = asked ?? Math.max(0, most / 2);
  return { graceMs, reserveMs, slackMs: Math.max(0, most - graceMs), silenceMs: deadlineMs };
}

/**
 * How much earlier than the reserve provides for killing must begin where a look for new processes takes `lookMs`:
 * one look may be under way, one more finds what was started meanwhile. At most the slack, or renewals had no time left.
 */
export function earlierMs(
  lookMs: number,
  { reserveMs, slackMs }: Pick<StopBudget, "reserveMs" | "slackMs">,
): number {
  return Math.min(slackMs, Math.max(0, 2 * lookMs - reserveMs));
}
