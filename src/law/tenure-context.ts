/** What all terms of one candidate share. */
import type { Clock } from "../seam/clock.js";
import type { Reports } from "./reports.js";
import type { Timing } from "./timing.js";

export interface TenureContext<Ended> {
  readonly election: string;
  readonly candidate: string;
  readonly clock: Clock;
  readonly timing: Timing;
  readonly events: Reports;
  /** A term is over and reported. */
  ended(tenure: Ended): void;
}
