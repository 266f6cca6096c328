/** The resource that the leaders write to. All it needs for safety is to remember the highest token. */

export interface WriteCheck {
  readonly accepted: boolean;
  readonly highest: bigint;
}

/** A schedule's memory in the store: what has run, what runs, and how far it has come. */
export class Ledger {
  #highest = -1n;

  /** Refuses whoever comes with an older token than it has seen. */
  write(token: bigint): WriteCheck {
    const accepted = token >= this.#highest;
    if (accepted) this.#highest = token;
    return { accepted, highest: this.#highest };
  }
}
