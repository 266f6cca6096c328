/** One election, as one peer knows it: who leads, whether this peer does, who of this process wants to. No I/O. */
import { StopSource } from "../../kit/stop.js";
import type { Clock } from "../../seam/clock.js";
import type { CoordinatorMessage, LeaderNote, Reply } from "./messages.js";

/** This peer leads. */
export interface Lead {
  readonly token: bigint;
  readonly candidate: string;
  readonly since: number;
  readonly leaseMs: number;
  readonly revoked: StopSource;
  value: string;
  /** On this process's clock: the lease counts from the last sign of life that was sent. */
  endsAt: number;
}

/** Another peer leads. */
interface Known extends Omit<LeaderNote, "leftMs"> {
  readonly until: number;
}

export interface RoomParts {
  readonly clock: Clock;
  readonly self: string | undefined;
  /** Higher is stronger; -1 for strangers. */
  readonly rank: (name: string) => number;
  readonly preempt: boolean;
  /** Somebody else leads, or nobody, or this peer should look again. */
  readonly wake: () => void;
  readonly log: (line: string) => void;
}

export class Room {
  readonly #parts: RoomParts;
  /** The highest number met so far. */
  highest = 0n;
  /** Candidates of this process that wait. */
  standing = 0;
  /** One of them is asking the others; the rest of them waits. */
  electing = false;
  /** It has sent COORDINATOR and has not opened its term. */
  announcing = false;
  #lead: Lead | undefined;
  #known: Known | undefined;

  constructor(parts: RoomParts) {
    this.#parts = parts;
  }

  /** This peer's term, also while its work is stopping. */
  get lead(): Lead | undefined {
    if (this.#lead !== undefined && this.#parts.clock.now() >= this.#lead.endsAt) this.#lead = undefined;
    return this.#lead;
  }

  /** Who leads, as far as signs of life tell. */
  get leader(): LeaderNote | null {
    const { clock, self = "" } = this.#parts;
    const now = clock.now();
    const lead = this.lead;
    if (lead !== undefined) {
      const { token, candidate, value, since } = lead;
      return { peer: self, token, candidate, value, since, leftMs: lead.endsAt - now };
    }
    if (this.#known === undefined || now >= this.#known.until) return null;
    const { until, ...known } = this.#known;
    return { ...known, leftMs: until - now };
  }

  open(lead: Lead): void {
    this.#lead = lead;
    this.#known = undefined;
    this.highest = lead.token;
    this.#parts.wake();
  }

  /** The term is over and its work has stopped. */
  end(lead: Lead): void {
    if (this.#lead !== lead) return;
    this.#lead = undefined;
    this.#parts.wake();
  }

  /** Tells the work to stop. The room is free when the candidate says that it has, or when its lease ends. */
  revoke(why: string): void {
    const lead = this.lead;
    if (lead === undefined || lead.revoked.aborted) return;
    this.#parts.log(`${why}: the work of term ${lead.token} must stop`);
    lead.revoked.stop();
  }

  /** A candidate that stands again has stopped its last work. */
  stands(candidate: string): void {
    const lead = this.lead;
    if (lead?.candidate === candidate && lead.revoked.aborted) this.end(lead);
  }

  coordinator(message: CoordinatorMessage): Partial<Reply> & { readonly yes: boolean } {
    const { clock, self = "", rank, preempt, log, wake } = this.#parts;
    const { from, token, candidate, value, since, opened } = message;
    const isHigher = rank(self) > rank(from);
    if (this.lead !== undefined) {
      if (isHigher) return { yes: false, higher: self };
      this.revoke(`COORDINATOR from ${from}, which is higher`);
      const left = this.lead;
      if (left !== undefined) return { yes: false, yieldsInMs: left.endsAt - clock.now() };
    }
    if (!opened && isHigher && (this.announcing || (this.standing > 0 && preempt))) {
      wake();
      return { yes: false, higher: self };
    }
    const known = this.leader;
    if (known !== null && rank(known.peer) > rank(from)) return { yes: false, higher: known.peer };
    const isNews = known?.peer !== from || known.token !== token;
    if (!opened && isNews && token <= this.highest) return { yes: false };
    const isChange = isNews || known.value !== value;
    this.#known = { peer: from, token, candidate, value, since, until: clock.now() + message.leaseMs };
    if (token > this.highest) this.highest = token;
    if (isNews) log(`COORDINATOR from ${from}: it leads with number ${token}`);
    if (isChange) wake();
    return { yes: true };
  }

  released(peer: string, token: bigint): void {
    if (this.#known?.peer !== peer || this.#known.token !== token) return;
    this.#known = undefined;
    this.#parts.log(`${peer} has given up number ${token}`);
    this.#parts.wake();
  }
}
