/** Who stands in an election, as far as its roster says: for the page, and for nothing that is decided. */
import type { Standee } from "../api/term.js";
import type { Election } from "../election/election.js";
import type { Clock } from "../seam/clock.js";
import type { WireCandidate } from "./protocol.js";

/** Where nobody was on the roster it is looked at once in so many questions: most elections have none. */
const EVERY = 3;

export class RosterView {
  readonly #election: Election;
  readonly #clock: Clock;
  #candidates: readonly WireCandidate[] = [];
  #seenAt = 0;
  #skip = 0;

  constructor(election: Election, clock: Clock) {
    this.#election = election;
    this.#clock = clock;
  }

  /** Part of an election's state; empty where nobody stands on a roster, or it was not seen for a ttl. */
  state(): { readonly candidates?: readonly WireCandidate[] } {
    const old = this.#clock.now() - this.#seenAt > this.#election.timing.ttlMs;
    return old || this.#candidates.length === 0 ? {} : { candidates: this.#candidates };
  }

  /** Reads it, where the store keeps records. Whether something has changed. What fails is looked at again. */
  async look(signal: AbortSignal): Promise<boolean> {
    if (this.#election.backend.records === undefined || signal.aborted) return false;
    if (this.#candidates.length === 0 && this.#skip++ % EVERY !== 0) return false;
    const askedAt = this.#clock.now();
    try {
      const candidates = (await this.#election.candidates({ signal })).map(wire);
      const changed = JSON.stringify(candidates) !== JSON.stringify(this.#candidates);
      this.#candidates = candidates;
      this.#seenAt = askedAt;
      return changed;
    } catch {
      return false; // the last one grows old by itself
    }
  }
}

function wire({ candidate, priority, eligible, since }: Standee): WireCandidate {
  return { candidate, priority, eligible, since };
}
