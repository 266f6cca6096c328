/**
 * What the library needs of an AbortSignal; any AbortSignal will do. A backend
 * that keeps thousands of holds may use something smaller: an AbortSignal with a
 * listener takes about a kilobyte.
 */
export interface Stop {
  readonly aborted: boolean;
  /** Why it was stopped; `undefined` before. */
  readonly reason: unknown;
  addEventListener(type: "abort", listener: () => void, options?: { readonly once?: boolean }): void;
  removeEventListener(type: "abort", listener: () => void): void;
}
