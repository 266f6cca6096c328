/** A term of this peer, in the hands of the law. A sign of life goes to all peers; that none of them hears it changes nothing: there is no quorum. */
import { readClocks } from "../../kit/clock.js";
import { untilAborted } from "../../kit/wait.js";
import type { Stop } from "../../kit/stop.js";
import type { CallOptions, Candidacy, Extension, Hold } from "../../seam/backend.js";
import type { Reading } from "../../seam/clock.js";
import type { BullyNode } from "./node.js";
import type { Lead } from "./room.js";

export class BullyHold implements Hold {
  readonly token: bigint;
  readonly asked: Reading;
  readonly ttlMs: number;
  readonly revoked: Stop;
  readonly #node: BullyNode;
  readonly #candidacy: Candidacy;
  readonly #lead: Lead;

  constructor(node: BullyNode, candidacy: Candidacy, lead: Lead, asked: Reading) {
    this.#node = node;
    this.#candidacy = candidacy;
    this.#lead = lead;
    this.token = lead.token;
    this.asked = asked;
    this.ttlMs = lead.leaseMs;
    this.revoked = lead.revoked;
  }

  /** Sends a sign of life without waiting for what the others say to it. */
  tell(): void {
    void this.#beat();
  }

  async renew({ signal }: CallOptions): Promise<Extension | "lost"> {
    signal.throwIfAborted();
    if (this.#over()) return "lost";
    const asked = readClocks(this.#node.clock);
    await untilAborted(signal, this.#beat());
    if (this.#over()) return "lost";
    this.#lead.endsAt = asked.now + this.ttlMs;
    return { asked };
  }

  async proclaim(value: string, options: CallOptions): Promise<Extension | "lost"> {
    options.signal.throwIfAborted();
    if (!this.#over()) this.#lead.value = value;
    return this.renew(options);
  }

  async release({ signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    const { election, attemptMs } = this.#candidacy;
    const room = this.#node.room(election);
    const isOurs = room.lead === this.#lead;
    room.end(this.#lead);
    if (!isOurs) return;
    const message = { kind: "release", election, token: this.token } as const;
    await untilAborted(signal, this.#node.askAll(this.#node.others, message, attemptMs / 2));
  }

  /** The lease that the term counted on ends by itself. */
  abandon(): void {}

  #over(): boolean {
    return this.#lead.revoked.aborted || this.#node.room(this.#candidacy.election).lead !== this.#lead;
  }

  async #beat(): Promise<void> {
    const { election, attemptMs } = this.#candidacy;
    const { token, candidate, value, since, leaseMs } = this.#lead;
    const message = {
      kind: "coordinator",
      election,
      token,
      candidate,
      value,
      since,
      leaseMs,
      opened: true,
    } as const;
    const replies = await this.#node.askAll(this.#node.others, message, attemptMs / 2);
    const stronger = [...replies.values()].find(({ higher }) => higher !== undefined)?.higher;
    if (stronger !== undefined && !this.#over())
      this.#node.room(election).revoke(`${stronger} is higher and leads`);
  }
}
