/**
 * The highest token known, as a floor for the next term: of leaders observed, of
 * whatever a campaign met in the store, and of our own terms. A store that grants
 * a lower one has lost its memory (wiped, restored, failed over to a stale copy),
 * and fenced resources would refuse what is done under it.
 */
import { ConclaveError } from "../kit/errors.js";

export class TokenFloor {
  #seen = -1n;
  #own = -1n;

  /** Some leader or candidate has this token. */
  seen(token: bigint): void {
    if (token > this.#seen) this.#seen = token;
  }

  /** A term of our own begins with this token. */
  admitted(token: bigint): void {
    this.#own = token;
  }

  /** Throws unless a term may begin with this token. */
  check(token: bigint): void {
    // Equal to one seen may be this very grant, which its own campaign or our observer has seen before it got here.
    const lowest = this.#own >= this.#seen ? this.#own + 1n : this.#seen;
    if (token >= lowest) return;
    throw new ConclaveError(
      "token-regression",
      `not leading: the store granted token ${token}, but after the tokens seen before it has to be ${lowest} or higher. ` +
        "The store was wiped or restored, and fenced resources would refuse the lower token. " +
        `Raise the store's tokens to ${lowest} or higher; or, if no resource remembers the old ones, call ` +
        "acceptRegression() on this election or restart this candidate (docs/guide/fencing.md)",
    );
  }

  /** An operator accepts that tokens begin anew. */
  forget(): void {
    this.#seen = -1n;
    this.#own = -1n;
  }
}

/** An observer was shown a leader with a lower token than the one before. */
export function wentBack(token: bigint, highest: bigint): ConclaveError {
  return new ConclaveError(
    "token-regression",
    `the store names a leader with token ${token} after one with token ${highest}: it was wiped or restored. ` +
      `Candidates that have seen ${highest} do not lead until its tokens are higher or an operator accepts the lower ones ` +
      "(docs/guide/fencing.md)",
  );
}
