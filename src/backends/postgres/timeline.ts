/**
 * After a failover. Where standbys follow asynchronously, the last commits of the
 * old primary may be missing on the new one: a grant, or a renewal, that its
 * holder counts on. So the table keeps the timeline under which leaderships are
 * granted, and when it was first seen; under a new one nobody is made leader
 * before the lease asked for could have run out. Who leads goes on renewing.
 *
 * It says nothing about an old primary that goes on taking writes: against that
 * only fences help.
 */
import { ConclaveError } from "../../kit/errors.js";
import { sqlState } from "./errors.js";
import type { RowWrite, Rows } from "./rows.js";

/** Nobody may be made leader for so long. Retriable: nothing was written. */
export class QuarantineError extends ConclaveError {
  readonly waitMs: number;

  constructor(election: string, waitMs: number) {
    super(
      "unavailable",
      `campaigning in election "${election}": the PostgreSQL server was promoted or restored a moment ago, and a leadership that it has lost may still be counted on; nobody is made leader for another ${Math.ceil(waitMs)} ms`,
    );
    this.waitMs = waitMs;
  }
}

export class Timeline {
  readonly #rows: Rows;
  readonly #warn: (message: string) => void;
  /** Where the timeline cannot be asked for, or nobody wants it. */
  #off: boolean;

  constructor(rows: Rows, on: boolean, warn: (message: string) => void) {
    this.#rows = rows;
    this.#off = !on;
    this.#warn = warn;
  }

  async grant(write: RowWrite, election: string, signal: AbortSignal): Promise<bigint | null> {
    const what = `campaigning in election "${election}"`;
    if (this.#off) return this.#rows.write(write, what, signal);
    try {
      const granted = await this.#rows.grant(write, what, signal);
      if (granted === null || typeof granted === "bigint") return granted;
      if (!granted.marked) await this.#rows.markTimeline(signal);
      throw new QuarantineError(election, granted.waitMs);
    } catch (error) {
      if (!cannotTell(error)) throw error;
      this.#off = true;
      this.#warn(
        "this PostgreSQL server does not tell its timeline, so a failover is not noticed: after one that loses commits two candidates may lead for up to a ttl",
      );
      return this.#rows.write(write, what, signal);
    }
  }
}

/** No such function, not supported, or not allowed: managed and look-alike servers differ. */
function cannotTell(error: unknown): boolean {
  if (!(error instanceof ConclaveError)) return false;
  const state = sqlState(error.cause);
  return state === "42883" || state === "0A000" || (state === "42501" && /function/.test(error.message));
}
