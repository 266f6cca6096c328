/** What all terms of one candidate share. */
import type { Releasing } from "./release.js";

export interface TenureContext<Ended> extends Releasing {
  readonly election: string;
  readonly candidate: string;
  /** A term is over and reported. */
  ended(tenure: Ended): void;
}
