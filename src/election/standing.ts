/**
 * One candidate's part in the roster of its election: it keeps its line there,
 * leaves a vacancy to candidates of a higher priority for a moment, and as leader
 * hands over to one that has been waiting for long enough. All of it is courtesy:
 * whoever does it late, wrongly or not at all leads or waits as without it.
 */
import { MOST_PRIORITY, Roster } from "../control/roster.js";
import type { RosterLine, Sighting } from "../control/roster.js";
import { describe, invalid, isRetriable } from "../kit/errors.js";
import { isHeir, LONGEST_HEIR_MS } from "../kit/heir.js";
import { recordsOf } from "../kit/records.js";
import { sleep } from "../kit/wait.js";
import type { Tenure } from "../law/tenure.js";
import type { ElectionOptions } from "../api/options.js";
import { handOver } from "./transfer.js";
import type { Transferring } from "./transfer.js";

/** What a candidate is, as far as its standing concerns it. */
export interface Standing extends Transferring {
  /** Its term, if it is in one. */
  readonly tenure: Tenure | undefined;
  /** Whether it campaigns or leads. */
  readonly stands: boolean;
}

/** So many classes of priority are told apart at a vacancy; each waits a step longer. */
const MOST_STEPS = 3;
const LEAST_STEP_MS = 50;
/** Terms in ttls before a leader hands over to a higher priority. */
const MIN_TERM_TTLS = 10;
/** How long, in ttls, a challenger must have been there without a gap. */
const STABLE_TTLS = 2;
/** Pauses between polls of stores that push nothing are this much longer than `retryMs` at most. */
const POLL_SPREAD = 1.3;

/** Whether the options ask for a roster at all: without it nothing is read or written. */
export function wantsRoster({ priority, eligible, minTermMs, roster }: ElectionOptions): boolean {
  return roster === true || priority !== undefined || eligible === false || minTermMs !== undefined;
}

export class RosterMember {
  readonly #of: Standing;
  readonly #roster: Roster;
  readonly #pushes: boolean;
  readonly #priority: number;
  readonly #eligible: boolean;
  readonly #minTermMs: number;
  #beat = 0;
  #since = 0;
  #begun = false;
  #looked = false;
  #said = false;

  constructor(of: Standing, options: ElectionOptions) {
    const { backend, election, clock, timing } = of;
    const { priority = 0, eligible = true, minTermMs = MIN_TERM_TTLS * timing.ttlMs } = options;
    if (!Number.isInteger(priority) || Math.abs(priority) > MOST_PRIORITY)
      throw invalid(
        `priority must be a whole number from -${MOST_PRIORITY} to ${MOST_PRIORITY}, got ${priority}`,
      );
    if (typeof eligible !== "boolean")
      throw invalid(`eligible must be true or false, got ${String(eligible)}`);
    if (typeof minTermMs !== "number" || !(minTermMs >= 0))
      throw invalid(`minTermMs must be 0 or more milliseconds, got ${minTermMs}`);
    const records = recordsOf(
      backend.records,
      "a roster of candidates (priority, eligible, minTermMs, roster)",
    );
    this.#of = of;
    this.#pushes = records.watch !== undefined;
    this.#priority = priority;
    this.#eligible = eligible;
    this.#minTermMs = minTermMs;
    this.#roster = new Roster({ records, election, clock, attemptMs: timing.attemptMs });
  }

  get eligible(): boolean {
    return this.#eligible;
  }

  /** Once, at the first campaign: the line is kept until the election is closed. */
  begin(): void {
    if (this.#begun) return;
    this.#begun = true;
    const { clock, track, stopSignal } = this.#of;
    this.#since = clock.wall();
    const stop = stopSignal.call(this.#of, undefined);
    void track.call(this.#of, this.#keep(stop.signal).finally(stop.unlink));
  }

  /**
   * How long a vacancy is left to others: a step for each class of priority that is
   * there above this one, and less than a step of chance. The leader that has just
   * gone may still be on the roster, and is not waited for.
   */
  readonly standBackMs = (): number => {
    const classes = new Set<number>();
    for (const { line } of this.others())
      if (line.priority > this.#priority && !line.leads) classes.add(line.priority);
    if (classes.size === 0) return 0;
    const { clock, timing } = this.#of;
    const trip = Math.max(LEAST_STEP_MS, 2 * this.#roster.roundTripMs);
    const stepMs = this.#pushes ? trip : Math.max(trip, timing.retryMs * POLL_SPREAD);
    return (Math.min(classes.size, MOST_STEPS) + clock.random() / 2) * stepMs;
  };

  /** Throws if the roster is known and has nobody of this name. */
  checkKnown(to: string): void {
    if (!this.#looked) return;
    const names = [...this.#roster.living().keys()];
    if (names.some((id) => isHeir(id, to))) return;
    const others = names.filter((id) => id !== this.#of.candidate).join(", ");
    throw invalid(
      `no candidate "${to}" stands in election "${this.#of.election}"; those who do: ${others || "nobody else"}`,
    );
  }

  /** Reads the roster, and says who is there. */
  async read(signal: AbortSignal): Promise<ReadonlyMap<string, Sighting>> {
    await this.#roster.look({ signal });
    return this.#roster.living();
  }

  /** Whoever else stands and may lead. */
  *others(): Generator<Sighting & { readonly candidate: string }> {
    for (const [candidate, sighting] of this.#roster.living())
      if (candidate !== this.#of.candidate && sighting.line.eligible) yield { candidate, ...sighting };
  }

  async #keep(signal: AbortSignal): Promise<void> {
    const { clock, timing, candidate } = this.#of;
    while (!signal.aborted) {
      await this.#safely(async () => {
        if (!this.#of.stands) await this.#roster.put(candidate, null, { signal });
        else await this.#roster.put(candidate, this.#line(), { signal });
        this.#looked = true;
        this.#considerChallengers();
      });
      await sleep(clock, (timing.ttlMs / 2) * (0.9 + clock.random() / 5), signal);
    }
    // Nobody is left back on the page for a ttl. One attempt: otherwise the line grows old by itself.
    const last = new AbortController();
    if (this.#looked) await this.#safely(() => this.#roster.put(candidate, null, { signal: last.signal }));
  }

  #line(): RosterLine {
    const { timing, tenure } = this.#of;
    return {
      beat: ++this.#beat,
      ttlMs: timing.ttlMs,
      priority: this.#priority,
      eligible: this.#eligible,
      leads: tenure?.stopping === false,
      since: this.#since,
    };
  }

  /** As leader: hands over to the highest that has been there for long enough, once the term has lasted its time. */
  #considerChallengers(): void {
    const { tenure, clock, timing, events, operators } = this.#of;
    if (tenure === undefined || tenure.stopping || tenure.lastedMs < this.#minTermMs) return;
    if (operators?.paused === true) return; // the challenger would give it back
    const now = clock.now();
    let best: (Sighting & { readonly candidate: string }) | undefined;
    for (const other of this.others()) {
      if (other.line.priority <= (best?.line.priority ?? this.#priority)) continue;
      if (other.freshSince !== undefined && now - other.freshSince >= STABLE_TTLS * timing.ttlMs)
        best = other;
    }
    if (best === undefined) return;
    const { candidate, line } = best;
    const why = `handing over to ${candidate}, whose priority is higher (${line.priority})`;
    events.log("info", why);
    const heir = { candidate, forMs: Math.min(2 * timing.retryMs, LONGEST_HEIR_MS) };
    void handOver(this.#of, tenure, heir, () => tenure.giveUp(why));
  }

  /** What cannot be written is written at the next beat; what the store refuses for good is said once. */
  async #safely(act: () => Promise<void>): Promise<void> {
    try {
      await act();
    } catch (error) {
      if (isRetriable(error) || this.#said) return;
      this.#said = true;
      this.#of.events.log(
        "error",
        `the roster cannot be kept: ${describe(error)}; candidates are not ordered by priority`,
      );
    }
  }
}
