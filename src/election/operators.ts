/**
 * What operators ask of one candidate: not to lead while the election is paused,
 * and to give a term up. Both come from the election's control record.
 */
import type { Controls } from "../control/codec.js";
import { followControls } from "../control/follow.js";
import { ControlRecord } from "../control/record.js";
import { serveRequests } from "../control/requests.js";
import type { RequestHandlers } from "../control/requests.js";
import { pausedText } from "../control/codec.js";
import { ConclaveError, describe, isRetriable } from "../kit/errors.js";
import { recordsOf } from "../kit/records.js";
import type { Tenure } from "../law/tenure.js";
import type { CallOptions } from "../seam/backend.js";
import { handOver, heirOf } from "./transfer.js";
import type { Transferring } from "./transfer.js";

/**
 * A read that is younger than this counts for the grant that follows it, so that
 * a candidate that is elected at once asks once. A pause takes effect as much later.
 */
export const FRESH_MS = 50;
/** A store that does not push is not read more often than this. */
const LEAST_POLL_MS = 500;

export class Operators {
  readonly #of: Transferring;
  readonly #record: ControlRecord;
  /** When the last read was asked that said "not paused". */
  #freeAt = -Infinity;
  #said = false;
  /** By the last read of this term. */
  #pausedNow = false;

  constructor(of: Transferring) {
    const { backend, election, clock, timing } = of;
    const records = recordsOf(backend.records, "following requests and pauses (controls: true)");
    this.#of = of;
    this.#record = new ControlRecord({ records, election, clock, attemptMs: timing.attemptMs });
  }

  /** Before a campaign: whether it may begin. While the election is paused this waits for the end of that, if it may. */
  async allowCampaign(wait: boolean, signal: AbortSignal): Promise<boolean> {
    const { clock } = this.#of;
    const askedAt = clock.now();
    if (!(await this.#paused(signal))) {
      this.#freeAt = askedAt;
      return true;
    }
    if (!wait) return false;
    for await (const { pause } of followControls(this.#record, this.#following(signal))) {
      if (pause !== null) continue;
      this.#of.events.log("info", "the election is no longer paused: campaigning");
      return true;
    }
    return false; // aborted
  }

  /** Whether a grant has to be given back, for the election is paused. Throws if that is not known. */
  async refuseGrant(signal: AbortSignal): Promise<boolean> {
    if (this.#of.clock.now() - this.#freeAt < FRESH_MS) return false;
    return this.#paused(signal);
  }

  /** Whether the election is paused, as far as this leader knows. */
  get paused(): boolean {
    return this.#pausedNow;
  }

  /** Throws if this leader knows that the election is paused: nobody that it names could take over. */
  checkNotPaused(): void {
    if (!this.#pausedNow) return;
    const { election } = this.#of;
    throw new ConclaveError("state", pausedText(election));
  }

  /** For the time of a term its leader carries out what it is asked to. */
  lead(tenure: Tenure): void {
    const { candidate, events } = this.#of;
    const handlers: RequestHandlers = {
      resign: (_, { by }) => {
        events.log("info", `asked to resign by ${by}`);
        void tenure.giveUp(`asked to resign by ${by}`);
        return "resigning";
      },
      transfer: ({ to }, { by }) => {
        this.checkNotPaused();
        const heir = heirOf(candidate, this.#of.timing, to, {});
        const what = `asked by ${by} to hand over to ${to}`;
        events.log("info", what);
        void handOver(this.#of, tenure, heir, () => tenure.giveUp(what));
        return `handing over to ${to}`;
      },
    };
    const { token, signal } = tenure;
    this.#pausedNow = false;
    const seen = ({ pause }: Controls): void => {
      this.#pausedNow = pause !== null;
    };
    const following = { ...this.#following(signal), seen };
    void this.#of.track(serveRequests(this.#record, { candidate, token }, handlers, following));
  }

  async #paused(signal: AbortSignal): Promise<boolean> {
    let controls: Controls;
    try {
      controls = await this.#record.read({ signal });
    } catch (error) {
      // A passing fault is no answer: campaigning goes on when there is one. What the store refuses for good says
      // nothing about the election, and must not leave it without a leader.
      if (isRetriable(error)) throw error;
      this.#complain(error);
      return false;
    }
    const { pause } = controls;
    if (pause === null) return false;
    const { events } = this.#of;
    events.log("info", `the election is paused, by ${pause.by}: not campaigning`);
    return true;
  }

  #following(signal: AbortSignal): Parameters<typeof followControls>[1] & CallOptions {
    const { ttlMs, retryMs } = this.#of.timing;
    const unpushedMs = Math.max(retryMs, LEAST_POLL_MS);
    return { signal, pollMs: ttlMs, unpushedMs, failed: (error) => this.#complain(error) };
  }

  /** A store that is away is reported by the campaign and by renewals. */
  #complain(error: unknown): void {
    if (isRetriable(error) || this.#said) return;
    this.#said = true;
    const why = describe(error);
    this.#of.events.log("error", `requests and pauses of operators cannot be followed: ${why}`);
  }
}
