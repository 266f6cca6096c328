/** What an election is opened with. */
import type { Backend } from "../seam/backend.js";
import type { Clock } from "../seam/clock.js";
import type { Logger } from "./events.js";

/** Durations that may be set. All are in milliseconds, and all have defaults. */
export interface TimingOptions {
  /** How long leadership lasts without a renewal. Default 10 s (Kubernetes: 15 s). */
  readonly ttlMs?: number | undefined;
  /** Pause between renewals. Default a third of the ttl. */
  readonly renewMs?: number | undefined;
  /**
   * How long after the last successful renewal was *asked for* we may still
   * act. What is left up to the ttl is the margin: holders stop early, so that
   * clocks may run at different rates. Default: ttl less max(15 %, 250 ms).
   */
  readonly renewDeadlineMs?: number | undefined;
  /** Longest pause between two reads of the store while waiting to be elected. Default a fifth of the ttl, at most 2 s. */
  readonly retryMs?: number | undefined;
  /** Longest a single request to the store may take. Default a quarter of the ttl, less if two would not fit. */
  readonly attemptMs?: number | undefined;
  /** How long the work may take to stop when the term is ended on purpose. Default 5 s. */
  readonly drainMs?: number | undefined;
  /** Resign after this long, so that leadership rotates. Default: never. */
  readonly maxTermMs?: number | undefined;
}

/** What an {@link Election} is opened with. */
export interface ElectionOptions extends TimingOptions {
  /** Name of the contest: candidates with the same name on the same store compete. */
  readonly name: string;
  readonly backend: Backend;
  /** Readable part of the candidate's id; a random part is always added. Default: the host's name. */
  readonly id?: string | undefined;
  /** What observers see while this candidate leads. Default: the candidate's id. */
  readonly value?: string | undefined;
  /** The candidate does not campaign before this says `true`. Asked again after `retryMs`. */
  readonly ready?: ((options: { signal: AbortSignal }) => boolean | Promise<boolean>) | undefined;
  /** Accept a backend without fencing tokens. Default `false`: it is refused. */
  readonly allowUnfenced?: boolean | undefined;
  readonly logger?: Logger | undefined;
  /** Time and chance. For tests. */
  readonly clock?: Clock | undefined;
  /** Whether `close()` closes the backend too. Default `false`: the caller closes what it opened. */
  readonly closeBackend?: boolean | undefined;
  /**
   * Follow what operators ask with `conclave resign`, `pause` and `unpause`: while
   * the election is paused this candidate is not elected, and as leader it resigns
   * when it is asked to. Costs one small read for each campaign and each term, and
   * a watch (where the store has none: a read every `retryMs`) while it leads.
   * Needs a backend with `records`. Default `false`: then nothing is read, and
   * those commands do not reach this candidate.
   */
  readonly controls?: boolean | undefined;
  /**
   * Write this candidate's terms down for `conclave history` and `readHistory()`:
   * the last 50 of the election, in the background, at the beginning and at the
   * end of each. Needs a backend with `records`. Default `false`.
   */
  readonly history?: boolean | undefined;
  /**
   * Higher is preferred, at a vacancy and, after {@link minTermMs}, by the sitting
   * leader, which then hands over. A whole number, for people: exclusion never
   * depends on it. Default 0. Candidates that are to be compared all set it (or
   * {@link roster}); needs a backend with `records`.
   */
  readonly priority?: number | undefined;
  /** `false`: never leads, but is on the roster, as an observer. Default `true`. */
  readonly eligible?: boolean | undefined;
  /** How long this candidate leads before it hands over to one of a higher priority. Default ten ttls. */
  readonly minTermMs?: number | undefined;
  /**
   * Be on the roster, for `candidates()`: one small record of the election, which
   * each candidate updates twice a ttl. Default: only with a priority.
   */
  readonly roster?: boolean | undefined;
}
