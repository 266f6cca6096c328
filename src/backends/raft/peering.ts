/** All links of one process to the voters, shared by everything in it. */
import { ConclaveError } from "../../kit/errors.js";
import type { Clock } from "../../seam/clock.js";
import type { Address, Peer } from "./address.js";
import type { Identity } from "./transport/handshake.js";
import { Link } from "./transport/link.js";
import { decodeAnswer, encode } from "./transport/wire.js";
import type { Answer, Request } from "./transport/wire.js";

export interface PeeringOptions {
  readonly own: Identity;
  readonly peers: readonly Peer[];
  /** Where voters are reached, if not at their address in the list. */
  readonly dial?: Readonly<Record<string, Address>> | undefined;
  readonly clock: Clock;
}

export class Peering {
  readonly own: Identity;
  readonly names: readonly string[];
  readonly #links = new Map<string, Link>();

  constructor({ own, peers, dial = {}, clock }: PeeringOptions) {
    this.own = own;
    this.names = peers.map(({ name }) => name);
    for (const peer of peers)
      if (peer.name !== own.name)
        this.#links.set(peer.name, new Link(own, peer.name, dial[peer.name] ?? peer, clock));
  }

  async ask(voter: string, request: Request, limitMs: number): Promise<Answer> {
    const link = this.#links.get(voter);
    if (link === undefined) throw new ConclaveError("state", `"${voter}" is no other voter`);
    const answer = decodeAnswer(await link.ask(encode(request), limitMs));
    if (answer === undefined)
      throw new ConclaveError("unavailable", `voter "${voter}" answered something unreadable`);
    return answer;
  }

  /** Other voters, those with an open connection first. */
  byReach(): string[] {
    const all = [...this.#links];
    return [...all.filter(([, link]) => link.connected), ...all.filter(([, link]) => !link.connected)].map(
      ([name]) => name,
    );
  }

  close(): void {
    for (const link of this.#links.values()) link.close();
  }
}
