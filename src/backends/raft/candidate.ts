/**
 * A campaign: pre-vote, vote, first BEAT; and waiting while somebody else leads.
 * It asks voters over {@link Voters}; what they may answer is `voter.ts`.
 */
import { ConclaveError } from "../../kit/errors.js";
import { settlesWithin, sleep, untilAborted } from "../../kit/wait.js";
import { StopSource } from "../../kit/stop.js";
import type { CampaignOptions, Candidacy } from "../../seam/backend.js";
import type { Clock } from "../../seam/clock.js";
import { Leader, RaftHold } from "./leader.js";
import type { Bid, VoteAnswer } from "./messages.js";
import { blockingOf, gather, majorityOf } from "./quorum.js";
import { View } from "./view.js";
import type { Voters } from "./voters.js";
import { askAll } from "./voters.js";

/** How long a cancelled campaign waits until voters know of it; what was promised ends by itself after that. */
const WITHDRAW_MS = 500;
/** Pause after an election that nobody won: longer with every one, never in step with others. */
const SPLIT_MS = 4;
const LONGEST_SPLIT_MS = 250;
/** After a release all who wait are told at the same moment. */
const RELEASED_MS = 3;

const MOST_HASTY = 3;

interface Refused {
  readonly led: boolean;
  readonly freeAt: number;
  /** Nobody leads; the last leader left the vacancy to another candidate until then. */
  readonly reserved: boolean;
}

type Outcome =
  | { readonly hold: RaftHold }
  /** Voters have promised others. `freeAt`: when a majority may be free again. */
  | Refused
  /** Votes were split, or somebody was faster. */
  | "again";

export interface CampaignParts {
  readonly voters: Voters;
  readonly clock: Clock;
  /** Added to every wait before standing: those with a shorter one are preferred. Default 0. */
  readonly patienceMs?: number | undefined;
  /** Told of what happens, in words for people. */
  readonly log?: ((line: string) => void) | undefined;
}

export class Campaign {
  readonly #parts: CampaignParts;
  readonly #candidacy: Candidacy;
  readonly #options: CampaignOptions;
  #view: View | undefined;
  /** Waits that ended at once, one after the other. */
  #hasty = 0;
  /** It has left the present vacancy to others. */
  #stoodBack = false;

  constructor(parts: CampaignParts, candidacy: Candidacy, options: CampaignOptions) {
    this.#parts = parts;
    this.#candidacy = candidacy;
    this.#options = options;
  }

  async run(): Promise<RaftHold | null> {
    const { wait, signal } = this.#options;
    const { clock } = this.#parts;
    const giveUpAt = clock.now() + this.#candidacy.attemptMs;
    try {
      for (let splits = 0; ;) {
        signal.throwIfAborted();
        const outcome = await this.#attempt();
        if (outcome !== "again" && "hold" in outcome) return outcome.hold;
        if (!wait && outcome !== "again" && outcome.led) return null;
        if (!wait && clock.now() > giveUpAt) {
          if (outcome !== "again") return null;
          throw new ConclaveError("timeout", "no candidate won this election in time");
        }
        if (outcome === "again") await this.#pause(splits++);
        else {
          if (outcome.led) this.#stoodBack = false;
          await this.#waitUntil(outcome);
          splits = 0;
        }
      }
    } finally {
      this.#view?.stop();
    }
  }

  async #attempt(): Promise<Outcome> {
    const { signal } = this.#options;
    const { clock } = this.#parts;
    signal.throwIfAborted();
    const asked = await untilAborted(signal, this.#preVote());
    if (!asked.yes) return asked.busy ? "again" : asked;
    if (await this.#standsBack(asked.heir)) return this.#attempt();
    const bid = { id: clock.uniqueId(), candidate: this.#candidacy.candidate };
    const term = asked.term + 1n;
    let hold: RaftHold | undefined;
    try {
      hold = await untilAborted(signal, this.#askForVotes(term, bid));
      signal.throwIfAborted();
    } catch (error) {
      await this.#withdraw(term, bid);
      throw error;
    }
    if (hold !== undefined) return { hold };
    await this.#withdraw(term, bid);
    return "again";
  }

  /** Leaves the vacancy to others, once. An heir does not: it was preferred by name. */
  async #standsBack(heir: boolean): Promise<boolean> {
    const { wait, signal } = this.#options;
    const { standBackMs } = this.#candidacy;
    if (!wait || heir || this.#stoodBack || standBackMs === undefined) return false;
    const ms = standBackMs();
    if (ms <= 0) return false;
    this.#stoodBack = true;
    await sleep(this.#parts.clock, ms, signal);
    return true;
  }

  /** Elected and opened, or `undefined` if others prevented it. */
  async #askForVotes(term: bigint, bid: Bid): Promise<RaftHold | undefined> {
    const { voters, clock } = this.#parts;
    const { election, ttlMs, attemptMs, value } = this.#candidacy;
    const count = voters.names.length;
    const request = { kind: "vote", election, term, bid, leaseMs: ttlMs } as const;
    const elected = await gather(askAll(voters, request, attemptMs), (answers, last) => {
      const yes = [...answers.values()].filter((answer) => answer.yes).length;
      if (yes >= majorityOf(count)) return true;
      const over = answers.size - yes >= blockingOf(count) || (last && answers.size >= majorityOf(count));
      return over ? false : undefined;
    });
    this.#log(`${bid.candidate} ${elected ? "is elected in" : "did not win"} term ${term} of "${election}"`);
    if (!elected) return undefined;
    const leader = new Leader({ voters, clock, election, term, bid, leaseMs: ttlMs, value, attemptMs });
    const asked = await leader.open().catch((error: unknown) => {
      // Refused by others is an answer; no answer is none.
      if (this.#options.signal.aborted) throw error;
      return "lost" as const;
    });
    return asked === "lost" ? undefined : new RaftHold(leader, asked, ttlMs);
  }

  async #preVote(): Promise<
    | { readonly yes: true; readonly term: bigint; readonly heir: boolean }
    | ({ readonly yes: false; readonly busy: boolean } & Refused)
  > {
    const { voters, clock } = this.#parts;
    const { election, candidate, attemptMs } = this.#candidacy;
    const count = voters.names.length;
    const answers = await gather(
      askAll(voters, { kind: "prevote", election, candidate }, attemptMs),
      (told, last): VoteAnswer[] | undefined => {
        const all = [...told.values()];
        const yes = all.filter((answer) => answer.yes).length;
        if (last && all.length >= majorityOf(count)) return all;
        return yes >= majorityOf(count) || all.length - yes >= blockingOf(count) ? all : undefined;
      },
    );
    for (const { promised } of answers) if (promised !== undefined) this.#options.seen?.(promised.term);
    const yes = answers.filter((answer) => answer.yes);
    if (yes.length >= majorityOf(count)) {
      const term = answers.reduce((most, answer) => (answer.term > most ? answer.term : most), 0n);
      return { yes: true, term, heir: yes.some(({ heir }) => heir === true) };
    }
    const unfit = answers.filter(({ why }) => why === "unfit" || why === "ahead");
    if (unfit.length >= blockingOf(count))
      throw new ConclaveError(
        "unavailable",
        `too few voters take part: ${unfit.map(({ detail }) => detail).join("; ")}`,
      );
    const now = clock.now();
    const free = answers
      .map((answer) => now + (answer.yes ? 0 : (answer.leftMs ?? this.#candidacy.retryMs)))
      .sort((a, b) => a - b);
    const freeAt = free[majorityOf(count) - 1] ?? free.at(-1) ?? now;
    const busy = answers.every((answer) => answer.yes || answer.why === "busy" || answer.why === "older");
    const led = isLed(answers, majorityOf(count));
    return { yes: false, busy, led, freeAt, reserved: !led && answers.some(({ why }) => why === "heir") };
  }

  /** Until the promises of a majority have ended, by the clock or because the leader gave up. */
  async #waitUntil({ freeAt, reserved }: Refused): Promise<void> {
    const { clock, voters, patienceMs = 0 } = this.#parts;
    const { election, ttlMs, attemptMs } = this.#candidacy;
    const { signal, wait } = this.#options;
    if (!wait) return sleep(clock, Math.min(freeAt - clock.now(), LONGEST_SPLIT_MS), signal);
    if (this.#view === undefined) {
      this.#view = new View(voters, clock, election, attemptMs);
      this.#view.start();
    }
    // Whoever was left a vacancy and does not come must not delay others further.
    const until = freeAt + patienceMs + clock.random() * (reserved ? RELEASED_MS : ttlMs / 8);
    for (let first = true; !signal.aborted && clock.now() < until; first = false) {
      // The first look does not wait: a report may have come while the voters were asked. So at most a few times in a
      // row, because a report can be lost.
      if (!first || reserved || this.#hasty++ >= MOST_HASTY)
        await this.#view.changed(until - clock.now(), signal);
      const sight = this.#view.sight();
      if (reserved && sight?.promised) return; // the heir, perhaps
      if (sight?.promised === null && !reserved) {
        if (!first) this.#hasty = 0;
        await sleep(clock, patienceMs + clock.random() * RELEASED_MS, signal);
        return;
      }
      if (sight?.promised) this.#options.seen?.(sight.promised.term);
    }
  }

  async #pause(splits: number): Promise<void> {
    const { clock, patienceMs = 0 } = this.#parts;
    const most = Math.min(LONGEST_SPLIT_MS, this.#candidacy.ttlMs / 4, SPLIT_MS * 2 ** Math.min(splits, 8));
    await sleep(clock, patienceMs + most * (0.5 + clock.random()), this.#options.signal);
  }

  /** So that nobody waits for a lease that nobody holds. */
  async #withdraw(term: bigint, bid: Bid): Promise<void> {
    const { voters, clock } = this.#parts;
    const { election } = this.#candidacy;
    const request = { kind: "release", election, term, candidate: bid.candidate, id: bid.id } as const;
    const told = Promise.allSettled(askAll(voters, request, WITHDRAW_MS).values());
    if (this.#options.signal.aborted) await settlesWithin(clock, WITHDRAW_MS, new StopSource(), told);
  }

  #log(line: string): void {
    this.#parts.log?.(line);
  }
}

/** A majority has promised the same leader. */
function isLed(answers: readonly VoteAnswer[], majority: number): boolean {
  const counts = new Map<string, number>();
  for (const { promised } of answers)
    if (promised !== undefined) counts.set(promised.bid.id, (counts.get(promised.bid.id) ?? 0) + 1);
  return [...counts.values()].some((count) => count >= majority);
}
