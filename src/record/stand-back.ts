/**
 * Leaving a vacancy to candidates of a higher priority for a short while. It is
 * counted by this candidate's own clock from when it first saw the vacancy, and
 * bounded: it orders candidates that are all there, and holds nobody up for long.
 */
import type { Candidacy } from "../seam/backend.js";
import type { Clock } from "../seam/clock.js";
import type { Entry } from "../seam/table.js";
import { isLeftTo, renewalIdOf } from "./lease.js";
import type { LeaseRecord, Takeover } from "./lease.js";

export class StandBack {
  readonly #clock: Clock;
  readonly #candidacy: Candidacy;
  /** The vacancy that is being left to others, and until when. */
  #vacancy: string | undefined;
  #until = -Infinity;

  constructor(clock: Clock, candidacy: Candidacy) {
    this.#clock = clock;
    this.#candidacy = candidacy;
  }

  /** Whether a vacancy would be left to others now. */
  get wanted(): boolean {
    return this.#wantedMs > 0;
  }

  /** The same decision, but what is open counts as held while it is left to others. */
  consider(takeover: Takeover, entry: Entry<LeaseRecord> | null): Takeover {
    const { candidate } = this.#candidacy;
    if (takeover.kind === "held") return takeover;
    if (entry !== null && (entry.record.holder === candidate || isLeftTo(entry, candidate))) return takeover;
    const vacancy = entry === null ? "" : renewalIdOf(entry);
    const now = this.#clock.now();
    if (vacancy !== this.#vacancy) {
      this.#vacancy = vacancy;
      this.#until = now + this.#wantedMs;
    }
    return this.#until > now ? { kind: "held", waitMs: this.#until - now } : takeover;
  }

  /** Never more than a ttl, whoever is asked. */
  get #wantedMs(): number {
    return Math.min(this.#candidacy.standBackMs?.() ?? 0, this.#candidacy.ttlMs);
  }
}
