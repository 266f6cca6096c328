/** What the sidecar says, on the wire. Tokens are decimal strings: JSON numbers end at 2^53. */
import type { Leader } from "../seam/backend.js";
import type { EndReason } from "../api/term.js";

/** A leader, as JSON. */
export interface WireLeader {
  readonly candidate: string;
  readonly token: string;
  readonly value: string;
  /** When the term began, by the leader's own clock, epoch milliseconds; absent where the store does not record it. */
  readonly since?: number;
}

/** A candidate on the roster of an election (`Election.candidates()`), as JSON. */
export interface WireCandidate {
  readonly candidate: string;
  readonly priority: number;
  /** `false`: never elected. */
  readonly eligible: boolean;
  /** When it began to stand, by its own clock, epoch milliseconds. */
  readonly since: number;
}

/** `GET /elections/NAME` */
export interface WireElection {
  readonly election: string;
  readonly backend: string;
  /** The id of this sidecar's candidate. */
  readonly candidate: string;
  /** Whether that candidate leads. */
  readonly leading: boolean;
  /** Renewals fail at the moment, but leadership is still held. */
  readonly jeopardy: boolean;
  readonly leader: WireLeader | null;
  /** `true`: this server has no candidate of its own, and changes nothing. */
  readonly observer?: boolean;
  /** Who stands, highest priority first, as the roster showed a moment ago; absent where nobody is on a roster. */
  readonly candidates?: readonly WireCandidate[];
  /** How long this answer may be relied on, counted from when it was asked for. */
  readonly validForMs: number;
  readonly ttlMs: number;
}

/**
 * One server-sent event of `GET /elections/NAME/events`, or of `GET /events`
 * for all elections; its name is `event`. `at`: epoch milliseconds.
 */
export type WireEvent =
  | {
      readonly event: "state";
      readonly at: number;
      readonly election: string;
      /** `null`: not known. */
      readonly state: WireElection | null;
    }
  | {
      readonly event: "elected" | "jeopardy" | "safe";
      readonly at: number;
      readonly election: string;
      readonly candidate: string;
      readonly token: string;
    }
  | {
      readonly event: "ended";
      readonly at: number;
      readonly election: string;
      readonly candidate: string;
      readonly token: string;
      readonly reason: EndReason;
      readonly detail: string;
    };

/** An error, as JSON. */
export interface WireError {
  readonly error: string;
}

export function wireLeader(leader: Leader | null): WireLeader | null {
  if (leader === null) return null;
  const { candidate, token, value, since } = leader;
  return { candidate, token: token.toString(), value, ...(since !== undefined && { since }) };
}
