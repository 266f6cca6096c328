/**
 * Versions under which this process gave a leadership back. A candidate that
 * stands again writes on such a version without a look: if it is not the newest,
 * the write is refused. Only for stores whose versions never come again.
 */
import { ExpiringMap } from "../kit/expiring-map.js";
import type { Candidacy } from "../seam/backend.js";
import type { Clock } from "../seam/clock.js";

interface Vacated {
  readonly version: bigint;
  readonly at: number;
}

export class VacatedVersions {
  readonly #clock: Clock;
  readonly #vacated: ExpiringMap<Vacated>;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#vacated = new ExpiringMap(clock);
  }

  /** Nobody led when this process wrote this version. */
  vacated(election: string, version: bigint): void {
    this.#vacated.set(election, { version, at: this.#clock.now() });
  }

  /** Once: whatever becomes of the write, the version is not the newest after it. For a ttl: stores that lost their memory grant nothing for as long. */
  take({ election, ttlMs }: Candidacy): bigint | undefined {
    const vacated = this.#vacated.get(election);
    this.#vacated.delete(election);
    return vacated && this.#clock.now() - vacated.at < ttlMs ? vacated.version : undefined;
  }
}
