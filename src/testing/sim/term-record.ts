/** One term as the monitor sees it: from outside, by true time. */
import type { SimNode, SimProcess } from "./node.js";
import type { SubjectTerm } from "./subject.js";

/** What the monitor knows of one term. */
export interface TermRecord {
  readonly term: SubjectTerm;
  readonly token: bigint;
  readonly owner: string;
  readonly node: SimNode;
  readonly process: SimProcess;
  /** Ordinal of its opening, over all nodes. */
  readonly opened: number;
  /** True time of its opening. */
  readonly openedAt: number;
  wasHeld: boolean;
  /** Its deadline, by the node's monotonic clock; known from the first renewal on. */
  deadline: number | undefined;
  /**
   * What the store lost its memory of. `extension`: perhaps the last extension of
   * this term, so that others rightly wait for a shorter time than the holder
   * counts on, until its next extension. `term`: the whole term, so that others
   * may be elected at once, and with the same token; for good, because a write
   * that was under way can bring its record back beside the next leader's.
   * Neither can be promised away: the holder asks the store only when it renews.
   */
  forgotten: "nothing" | "extension" | "term";
  /** When that was, by the node's monotonic clock. */
  forgottenAt: number;
  /** When its key went, by the node's monotonic clock. */
  goneAt: number | undefined;
  /** True time at which it is over for certain, however slow its clock; known from the first renewal on. */
  overBy: number;
  extendedAt: number;
  ended: boolean;
  /** `own`: of a term from `campaign()`, which its owner ends. */
  work: "none" | "running" | "own" | "settled";
  /** When its work was told to stop, by the node's monotonic clock. */
  abortedAt: number | undefined;
}
