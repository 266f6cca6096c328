/**
 * A resource that checks tokens, far away: writes reach it up to six seconds
 * late, in any order. It keeps the highest token it has seen and refuses lower
 * ones; what it must never do is take a write of an older term after one of a
 * newer, or of two terms under one token.
 */
import type { Monitor } from "./monitor.js";
import type { TermRecord } from "./term-record.js";
import type { Random } from "./random.js";
import type { Scheduler } from "./scheduler.js";

const LATEST_MS = 6_000;

export class FencedResource {
  accepted = 0;
  refused = 0;
  #highest = -1n;
  #newest: TermRecord | undefined;

  constructor(
    readonly scheduler: Scheduler,
    readonly monitor: Monitor,
    readonly random: Random,
  ) {}

  /** Sends a write on its way. Nobody waits for it. */
  send(term: TermRecord): void {
    const late = this.random.chance(0.2);
    const delay = late ? this.random.between(0, LATEST_MS) : this.random.logNormal(5, 1);
    this.scheduler.quietly(this.scheduler.now + delay, () => this.#receive(term));
  }

  #receive(term: TermRecord): void {
    if (term.token < this.#highest) {
      this.refused++;
      return;
    }
    this.accepted++;
    this.#highest = term.token;
    const newest = this.#newest;
    // Not promised after amnesia: a store that counts anew grants old tokens to candidates that have not met them, and
    // no fence can tell. That those who have met them do not lead is a rule of its own (`token-order`).
    if (newest !== undefined && newest !== term && !this.monitor.forgetful) {
      if (newest.token === term.token) {
        this.monitor.violate(
          "fence",
          `the resource took writes of ${newest.owner} and ${term.owner} under token ${term.token}`,
        );
      } else if (newest.opened > term.opened) {
        this.monitor.violate(
          "fence",
          `the resource took a write of term ${term.token} after one of the later term ${newest.token}`,
        );
      }
    }
    this.#newest = term;
  }
}
