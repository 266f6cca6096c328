/** What all terms of one candidate share. */
import type { TransferOptions, TransferResult } from "../api/term.js";
import type { Releasing } from "./release.js";

export interface TenureContext<Ended> extends Releasing {
  readonly election: string;
  readonly candidate: string;
  /** A term is over and reported. */
  ended(tenure: Ended): void;
  /** Ends a term in favour of a candidate, and sees who leads next. */
  transfer(tenure: Ended, to: string, options?: TransferOptions): Promise<TransferResult>;
}
