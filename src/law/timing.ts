/**
 * Every number of an election, derived from one, checked against the others.
 * A combination that cannot keep a lease is refused with its arithmetic, not
 * discovered at three in the morning.
 */
import type { Guarantees, TimingDefaults } from "../seam/backend.js";
import type { TimingOptions } from "../api/options.js";
import { invalid } from "../kit/errors.js";

/** Every duration of an election, resolved and checked. */
export interface Timing {
  readonly ttlMs: number;
  readonly renewMs: number;
  readonly marginMs: number;
  readonly retryMs: number;
  readonly attemptMs: number;
  readonly drainMs: number;
  readonly maxTermMs: number | undefined;
}

const DAY_MS = 24 * 60 * 60 * 1000;
const DEFAULT_TTL_MS = 10_000;
const DEFAULT_DRAIN_MS = 5_000;
const LONGEST_RETRY_MS = 2_000;
const LEAST_MARGIN_MS = 250;
const MARGIN_SHARE = 0.15;
/** Below this share clocks that differ by a few percent would give two leaders. */
const LEAST_MARGIN_SHARE = 0.05;

export function resolveTiming(
  options: TimingOptions,
  defaults: TimingDefaults,
  guarantees: Guarantees,
): Timing {
  // The store's own timings belong together: they apply as long as its ttl does.
  const ttlMs = duration("ttlMs", options.ttlMs ?? defaults.ttlMs ?? DEFAULT_TTL_MS, 100);
  const own = ttlMs === defaults.ttlMs ? defaults : {};
  if (ttlMs < guarantees.ttl.minMs) {
    throw invalid(
      `ttlMs is ${ttlMs}; this backend keeps no lease shorter than ${guarantees.ttl.minMs} ms: raise it`,
    );
  }
  const renewMs = duration("renewMs", options.renewMs ?? own.renewMs ?? ttlMs / 3);
  const renewDeadlineMs = duration(
    "renewDeadlineMs",
    options.renewDeadlineMs ?? own.renewDeadlineMs ?? ttlMs - Math.max(LEAST_MARGIN_MS, ttlMs * MARGIN_SHARE),
  );
  const fits = (renewDeadlineMs - renewMs) / 2;
  const attemptMs = duration("attemptMs", options.attemptMs ?? Math.max(1, Math.min(ttlMs / 4, fits)));
  const timing = {
    ttlMs,
    renewMs,
    marginMs: ttlMs - renewDeadlineMs,
    attemptMs,
    retryMs: duration("retryMs", options.retryMs ?? own.retryMs ?? Math.min(LONGEST_RETRY_MS, ttlMs / 5), 10),
    drainMs: duration("drainMs", options.drainMs ?? DEFAULT_DRAIN_MS, 0),
    maxTermMs: options.maxTermMs === undefined ? undefined : duration("maxTermMs", options.maxTermMs, 100),
  };
  checkRelations(timing, renewDeadlineMs);
  return timing;
}

function checkRelations(timing: Timing, renewDeadlineMs: number): void {
  const { ttlMs, renewMs, marginMs, attemptMs } = timing;
  if (marginMs < ttlMs * LEAST_MARGIN_SHARE) {
    throw invalid(
      `renewDeadlineMs (${show(renewDeadlineMs)}) must be at most 95 % of ttlMs (${show(ttlMs)}): ` +
        `a margin of ${show(marginMs)} ms leaves no room for clocks that run at different rates`,
    );
  }
  const needed = renewMs + 2 * attemptMs;
  // A rounding error of the derived values is not the user's mistake.
  if (needed > renewDeadlineMs + 0.001) {
    throw invalid(
      `a renewal and one retry do not fit: renewMs (${show(renewMs)}) + 2 x attemptMs (${show(attemptMs)}) = ${show(needed)}, ` +
        `but only renewDeadlineMs (${show(renewDeadlineMs)}) is left before the holder must stop; raise ttlMs or lower the others`,
    );
  }
}

/** Node turns a bad timer delay into 1 ms: nothing but a plain number in range gets past here. */
function duration(name: string, value: unknown, atLeast = 1): number {
  if (typeof value !== "number" || !Number.isFinite(value)) {
    throw invalid(
      `${name} must be a finite number of milliseconds, got ${typeof value === "string" ? JSON.stringify(value) : String(value)}`,
    );
  }
  if (value < atLeast || value > DAY_MS) {
    throw invalid(`${name} is ${show(value)}; it must lie between ${atLeast} and ${DAY_MS} ms (24 hours)`);
  }
  return value;
}

function show(ms: number): string {
  return String(Math.round(ms * 1000) / 1000);
}
