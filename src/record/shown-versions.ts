/** Keeps observers from being shown an older record after a newer one, as far as that can be known. */
import type { Entry } from "../seam/table.js";
import type { Clock } from "../seam/clock.js";
import type { LeaseRecord } from "./lease.js";
import type { ExpiringMap } from "../kit/expiring-map.js";

/**
 * A store that does not mark its reads as current is assumed to have lost its data
 * when it has shown only older versions for this many ttls: no replica lags that
 * far for that long, and observers must not be silent forever.
 */
const LASTING_TTLS = 10;

export class ShownVersions {
  readonly #clock: Clock;
  /** Newest version shown, by election: kept for later calls too. */
  readonly #shown: ExpiringMap<bigint>;
  readonly #election: string;
  #olderSince: number | undefined;

  constructor(clock: Clock, shown: ExpiringMap<bigint>, election: string) {
    this.#clock = clock;
    this.#shown = shown;
    this.#election = election;
  }

  accepts({ version, record }: Entry<LeaseRecord>, ownTtlMs: number): boolean {
    const newest = this.#shown.get(this.#election);
    if (newest !== undefined && version < newest) {
      this.#olderSince ??= this.#clock.now();
      const lastingMs = LASTING_TTLS * (record.ttlMs ?? ownTtlMs);
      if (this.#clock.now() - this.#olderSince < lastingMs) return false;
    }
    this.#olderSince = undefined;
    this.#shown.set(this.#election, version);
    return true;
  }
}
