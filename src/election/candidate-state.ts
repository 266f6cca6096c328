/** In which states a candidate can be. */
import type { Tenure } from "../law/tenure.js";

/** Which call the candidate is in: `run` goes on until it is stopped, `campaign` ends with its one term. */
export type Call = "run" | "campaign";

export type CandidateState =
  | { readonly kind: "idle" }
  /** From the call on: `ready()` and pauses between attempts belong to it. */
  | { readonly kind: "campaigning"; readonly call: Call }
  | { readonly kind: "leading"; readonly call: Call; readonly tenure: Tenure };

export const IDLE: CandidateState = { kind: "idle" };
