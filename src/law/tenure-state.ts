/** In which states a term can be. It begins held and goes down this list only. */
import type { TermEnd } from "../api/term.js";
import type { Deadline } from "./deadline.js";

/** A deliberate end that is under way. */
type DeliberateEnd = Pick<TermEnd, "reason" | "detail">;

export type TenureState =
  | { readonly kind: "held" }
  /** On its way out: the signal is aborted, the lease is still renewed, the work may stop in good order. */
  | (DeliberateEnd & { readonly kind: "draining" })
  /** The work did not stop in time. No renewal counts any more; the deadline is all that ends it for certain. */
  | (DeliberateEnd & { readonly kind: "lapsing"; readonly deadline: Deadline })
  | { readonly kind: "over"; readonly end: TermEnd; readonly lastedMs: number; readonly reported: boolean };

export const HELD: TenureState = { kind: "held" };
