/** Who shall lead next: whether that is me, and what is believed of a name that was read from a store. */
import type { Heir } from "../seam/backend.js";
import { namesCandidate } from "./names.js";

/** Nobody leaves a vacancy to an heir for longer than this, whatever is written in a record. */
export const LONGEST_HEIR_MS = 60_000;

/** Whether `heir` means this candidate: its full id, or the id without its random suffix. */
export function isHeir(candidate: string, heir: string): boolean {
  return candidate === heir || readablePart(candidate) === heir;
}

/** A candidate's id without the random suffix, which has no dash of its own. */
export function readablePart(candidate: string): string {
  const dash = candidate.lastIndexOf("-");
  return dash > 0 ? candidate.slice(0, dash) : candidate;
}

/** What a store says about an heir. It is hostile until checked: what cannot be meant counts as absent. */
export function heirFrom(candidate: unknown, forMs: unknown): Heir | undefined {
  if (!namesCandidate(candidate)) return undefined;
  if (typeof forMs !== "number" || !Number.isFinite(forMs) || forMs <= 0) return undefined;
  return { candidate, forMs: Math.min(forMs, LONGEST_HEIR_MS) };
}
