/**
 * The other half of a token: a resource that remembers the highest one it has
 * seen and refuses older ones. Core knows only this much of it; the fences
 * themselves are in `conclave/fencing`.
 */

/** Options of a check at a fence. */
export interface FenceOptions {
  readonly signal?: AbortSignal | undefined;
}

/** A resource that refuses older tokens than the newest it has seen. */
export interface Fence {
  /**
   * Returns (or resolves) if no newer token has been seen, and remembers this
   * one. A `StaleLeaderError` = a newer one has been seen, for certain. Any
   * other error = not known, and nothing may be done on it.
   *
   * A check protects what happens in the same step. Where check and act are two
   * steps, the act has to carry the token too.
   */
  check(token: bigint, options?: FenceOptions): void | Promise<void>;
}

/** Whoever acts on a token: a term. */
export interface Bearer {
  readonly token: bigint;
  readonly signal: AbortSignal;
  /** Throws unless leadership is held at this very moment. */
  assertHeld(): void;
}

/** A fence with acts of its own, each of which checks the token in the same step. */
export interface FencedResource<Acts> extends Fence {
  /** The acts, in the name of one bearer. */
  bind(bearer: Bearer): Acts;
}

/** The least a fence offers to a term. */
export interface Guard {
  /** Looks at the clock, then asks the resource. */
  check(options?: FenceOptions): Promise<void>;
}
