/** What the commands report: one object per event, the same for people and for machines. */
import type { Leader } from "../seam/backend.js";
import { describe, isConclaveError } from "../kit/errors.js";
import type { Term, TermEnd } from "../api/term.js";
import { redact } from "./secrets.js";

export type LineEvent =
  | "store"
  | "elected"
  | "ended"
  | "jeopardy"
  | "safe"
  | "leader"
  | "work"
  | "error"
  | "contained";

/** A line of `--log json` and `--json`. Field names are API. */
export interface Line {
  readonly event: LineEvent;
  /** Epoch milliseconds, with fraction. */
  readonly at: number;
  readonly election: string;
  /** The candidate the line is about: with `leader` the one who leads (`null`: nobody), else the one that reports. */
  readonly candidate: string | null;
  /** Decimal. `null`: there is no term this is about. */
  readonly token: string | null;
  /** `ended`: resigned, closed, expired or revoked. `jeopardy`, `error`: what went wrong. `contained`: cgroup, scan or group. */
  readonly reason?: string;
  /** `store`: where elections live. `ended`, `contained`: one line for people. */
  readonly detail?: string;
  /** `error`, `jeopardy`: the stable code, where there is one. */
  readonly code?: string;
  /** `leader`: what the leader publishes. */
  readonly value?: string | null;
  /** `work`: how many pieces of work this term has done. */
  readonly count?: number;
}

const REANCHOR_MS = 20;
let origin = performance.timeOrigin;

/** Now, finer than a millisecond. Follows the wall clock when that is set, or the machine was suspended. */
export function preciseNow(): number {
  const wall = Date.now();
  if (Math.abs(origin + performance.now() - wall) > REANCHOR_MS) origin = wall - performance.now();
  return Math.round((origin + performance.now()) * 1_000) / 1_000;
}

/** Said at every start, before anything else: candidates that name another store do not compete. */
export function storeLine(election: string, candidate: string | null, where: string): Line {
  return { event: "store", at: preciseNow(), election, candidate, token: null, detail: where };
}

export function termLine(event: LineEvent, term: Term, at: number = preciseNow()): Line {
  return {
    event,
    at,
    election: term.election,
    candidate: term.candidate,
    token: term.token.toString(),
  };
}

export function endedLine(term: Term, end: TermEnd, at: number): Line {
  return { ...termLine("ended", term, at), reason: end.reason, detail: redact(end.detail) };
}

export function leaderLine(election: string, leader: Leader | null): Line {
  return {
    event: "leader",
    at: preciseNow(),
    election,
    candidate: leader?.candidate ?? null,
    token: leader?.token.toString() ?? null,
    value: leader?.value ?? null,
  };
}

/** What an error adds to a line. */
export function errorFields(error: unknown): Pick<Line, "reason" | "code"> {
  const reason = redact(describe(error));
  return isConclaveError(error) ? { reason, code: error.code } : { reason };
}

export function errorLine(
  election: string,
  candidate: string | null,
  token: bigint | null,
  error: unknown,
): Line {
  const base = {
    event: "error",
    at: preciseNow(),
    election,
    candidate,
    token: token?.toString() ?? null,
  } as const;
  return { ...base, ...errorFields(error) };
}
