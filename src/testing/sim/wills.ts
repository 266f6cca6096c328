/**
 * Leaderships that somebody else gives back: of processes that died, and of terms
 * that are over, sometimes long after, when the same candidate leads again.
 */
import type { Claim } from "../../seam/backend.js";
import { ELECTION } from "./store-parts.js";
import type { TermRecord } from "./term-record.js";
import type { Replica } from "./replica.js";
import type { World } from "./world.js";

interface Led {
  readonly term: TermRecord;
  readonly candidate: string;
}

export class Wills {
  readonly #led: Led[] = [];

  led(term: TermRecord, candidate: string | undefined): void {
    if (candidate !== undefined && !this.#led.some((each) => each.term === term))
      this.#led.push({ term, candidate });
  }

  /** A term that is over for certain: the newest, or (`back` > 0) one before it. */
  past(back: number): Claim | undefined {
    const over = this.#led.filter(({ term }) => term.ended);
    const led = over[Math.max(0, over.length - 1 - back)];
    return led && { election: ELECTION, candidate: led.candidate, token: led.term.token };
  }

  /** The newest term that is not known to be over. */
  present(): Claim | undefined {
    const led = this.#led.findLast(({ term }) => !term.ended);
    return led && { election: ELECTION, candidate: led.candidate, token: led.term.token };
  }
}

/** A will is executed by another process. A store that lost its memory may have given the same token twice: not there. */
export function executeWill(world: World, replica: Replica, arg: number): void {
  const claim = world.wills.past(Math.floor(arg * 3));
  if (claim === undefined || world.monitor.forgetful) return;
  bystander(world, replica)?.release(claim);
}

/** An operator ends the term of a leader that may be paused, cut off or quite well. */
export function evictLeader(world: World, replica: Replica): void {
  const claim = world.wills.present();
  if (claim !== undefined) bystander(world, replica)?.evict(claim);
}

/** Another process than this one, if it runs. */
function bystander(world: World, replica: Replica): Replica["candidate"] {
  const other = [...world.replicas]
    .reverse()
    .find((each) => each !== replica && each.candidate?.open === true);
  return other?.node.turning === true ? other.candidate : undefined;
}
