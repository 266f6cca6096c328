/**
 * Writes a candidate's terms into the election's history, beside the term and
 * never in its way: the writes go one after the other in the background, and
 * what cannot be written is logged and left out.
 */
import { HistoryRecord } from "../control/history.js";
import type { PastTerm } from "../control/history.js";
import { describe, isRetriable } from "../kit/errors.js";
import { recordsOf } from "../kit/records.js";
import type { Stop } from "../seam/stop.js";
import { sleep } from "../kit/wait.js";
import type { Tenure } from "../law/tenure.js";
import type { Following } from "./follower-log.js";

/** Tries of one write, unless the candidate is closed meanwhile. */
const MOST_ATTEMPTS = 3;

export class HistoryWriter {
  readonly #of: Following;
  readonly #closing: Stop;
  readonly #record: HistoryRecord;
  #tail: Promise<void> = Promise.resolve();
  #refused = false;

  constructor(of: Following, closing: Stop) {
    const { backend, election, clock, timing } = of;
    const records = recordsOf(backend.records, "the history of an election");
    this.#of = of;
    this.#closing = closing;
    this.#record = new HistoryRecord({ records, election, clock, attemptMs: timing.attemptMs });
  }

  /** What is known of the term by now is written: at its beginning and at its end. */
  note(tenure: Tenure): void {
    const { token, since, over } = tenure;
    const { reason, detail } = over ?? { reason: null, detail: "" };
    const lastedMs = over === undefined ? null : Math.round(tenure.lastedMs);
    const term = { candidate: this.#of.candidate, token, since, lastedMs, reason, detail };
    this.#tail = this.#of.track(this.#tail.then(() => this.#write(term)));
  }

  async #write(term: PastTerm): Promise<void> {
    const { clock, events, timing } = this.#of;
    const { signal } = new AbortController();
    for (let attempt = 1; !this.#refused; attempt++) {
      try {
        return await this.#record.write(term, { signal });
      } catch (error) {
        const last = attempt === MOST_ATTEMPTS || this.#closing.aborted;
        this.#refused = !isRetriable(error);
        if (this.#refused || last)
          events.log(
            "warn",
            `term ${term.token} could not be written into the history: ${describe(error)}` +
              (this.#refused ? "; no further one will be" : ""),
          );
        if (last) return;
        await sleep(clock, timing.retryMs, this.#closing);
      }
    }
  }
}
