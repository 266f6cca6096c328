/**
 * A campaign by Garcia-Molina's algorithm: ELECTION to all higher peers; an
 * ANSWER means that one of them is there, and this one waits for its COORDINATOR;
 * silence means that this one leads, and says so.
 */
import { readClocks } from "../../kit/clock.js";
import { StopSource } from "../../kit/stop.js";
import { sleep, untilAborted } from "../../kit/wait.js";
import type { CampaignOptions, Candidacy } from "../../seam/backend.js";
import { BullyHold } from "./hold.js";
import type { LeaderNote } from "./messages.js";
import type { BullyNode } from "./node.js";
import type { Lead, Room } from "./room.js";

/** Between two looks at a leader whose work is stopping. */
const YIELD_MS = 20;

export class Campaign {
  readonly #node: BullyNode;
  readonly #room: Room;
  readonly #candidacy: Candidacy;
  readonly #options: CampaignOptions;
  /** T: longest wait for an ANSWER. */
  readonly #answerMs: number;
  /** Whose silence was reported last. */
  #silent: bigint | undefined;

  constructor(node: BullyNode, candidacy: Candidacy, options: CampaignOptions) {
    this.#node = node;
    this.#room = node.room(candidacy.election);
    this.#candidacy = candidacy;
    this.#options = options;
    this.#answerMs = candidacy.attemptMs;
  }

  async run(): Promise<BullyHold | null> {
    const { wait, signal } = this.#options;
    this.#room.stands(this.#candidacy.candidate);
    this.#room.standing++;
    try {
      for (;;) {
        signal.throwIfAborted();
        this.#node.assertAlone();
        const waitMs = this.#mustWait();
        if (waitMs === undefined) {
          const outcome = await this.#elect();
          if (outcome instanceof BullyHold) return outcome;
          if (!wait && (outcome === "led" || this.#room.leader !== null)) return null;
          if (outcome !== "again") await this.#pause(this.#coordinatorMs());
        } else if (!wait && this.#room.leader !== null) return null;
        else await this.#pause(waitMs);
      }
    } finally {
      this.#room.standing--;
      this.#node.wake(this.#candidacy.election);
    }
  }

  /** T': how long a higher peer that answered may take to become coordinator. */
  #coordinatorMs(): number {
    const higher = this.#node.others.filter((name) => this.#node.isHigher(name)).length;
    return this.#answerMs * (higher + 1) + (this.#node.clock.random() * this.#answerMs) / 2;
  }

  /** While somebody leads whom this one does not bully, or another candidate of this process asks. `undefined`: go. */
  #mustWait(): number | undefined {
    const leader = this.#room.leader;
    if (leader !== null) this.#options.seen?.(leader.token);
    if (this.#room.electing) return this.#answerMs;
    if (leader === null || !this.#keeps(leader)) return undefined;
    return leader.leftMs + (this.#node.clock.random() * this.#answerMs) / 2;
  }

  /** Whether this leader is left in peace. */
  #keeps({ peer }: LeaderNote): boolean {
    const { wait } = this.#options;
    return !wait || !this.#node.preempt || peer === this.#node.name || this.#node.isHigher(peer);
  }

  async #elect(): Promise<BullyHold | "led" | "waiting" | "again"> {
    const { election } = this.#candidacy;
    const { signal } = this.#options;
    this.#room.electing = true;
    try {
      const higher = this.#node.others.filter((name) => this.#node.isHigher(name));
      this.#node.log(
        election,
        higher.length === 0 ? "ELECTION: I am the highest" : `ELECTION to ${higher.join(", ")}`,
      );
      const ask = (peer: string) =>
        ({ kind: this.#node.isHigher(peer) ? "election" : "who", election }) as const;
      const replies = await untilAborted(signal, this.#node.askAll(this.#node.others, ask, this.#answerMs));
      const present = this.#learn([...replies.values()].flatMap(({ leader }) => leader ?? []));
      for (const { highest } of replies.values())
        if (highest > this.#room.highest) this.#room.highest = highest;
      if (present !== null && this.#keeps(present)) return "led";
      const up = higher.filter((name) => replies.get(name)?.up === true);
      if (up.length > 0) {
        this.#node.log(election, `ANSWER from ${up.join(", ")}: I wait for a COORDINATOR`);
        return "waiting";
      }
      if (higher.length > 0) this.#node.log(election, `no ANSWER from ${higher.join(", ")}`);
      return await this.#announce(present);
    } finally {
      this.#room.electing = false;
      this.#room.announcing = false;
      this.#node.wake(election);
    }
  }

  /** The strongest leader that is told of. */
  #learn(leaders: readonly LeaderNote[]): LeaderNote | null {
    const own = this.#room.leader;
    const all = own === null ? leaders : [own, ...leaders];
    for (const { token } of all) this.#options.seen?.(token);
    return all.reduce<LeaderNote | null>(
      (best, one) => (best === null || this.#node.rank(one.peer) > this.#node.rank(best.peer) ? one : best),
      null,
    );
  }

  /** COORDINATOR to all, again and again until nobody is left who leads; then the term opens. */
  async #announce(present: LeaderNote | null): Promise<BullyHold | "waiting" | "again"> {
    const { election, candidate, value, ttlMs } = this.#candidacy;
    const { clock, others } = this.#node;
    const { signal } = this.#options;
    const since = clock.wall();
    /** A lower leader that does not answer may act until then. */
    const silentUntil = present === null ? 0 : clock.now() + present.leftMs;
    let token = 0n;
    this.#room.announcing = true;
    try {
      for (let told = false; ; told = true) {
        if (token <= this.#room.highest)
          token = max(this.#room.highest + 1n, BigInt(Math.trunc(clock.wall())));
        if (!told)
          this.#node.log(
            election,
            `COORDINATOR to ${others.join(", ") || "nobody"}: I lead, number ${token}`,
          );
        const asked = readClocks(clock);
        const note = { token, candidate, value, since, leaseMs: ttlMs };
        const message = { kind: "coordinator", election, ...note, opened: false } as const;
        const replies = await untilAborted(signal, this.#node.askAll(others, message, this.#answerMs));
        this.#node.assertAlone();
        const highest = [...replies.values()].reduce((most, reply) => max(most, reply.highest), 0n);
        const stronger =
          this.#stronger() ?? [...replies.values()].find(({ higher }) => higher !== undefined)?.higher;
        if (stronger !== undefined) {
          this.#node.log(election, `${stronger} is higher: I wait for its COORDINATOR`);
          await this.#withdraw(token);
          return "waiting";
        }
        const yielding = [...replies].filter(([, reply]) => reply.yieldsInMs !== undefined);
        if (yielding.length > 0 && !told)
          this.#node.log(election, `${yielding.map(([name]) => name).join(", ")} stops its work first`);
        const silent = present !== null && present.peer !== this.#node.name && !replies.has(present.peer);
        if (silent && clock.now() < silentUntil) {
          if (!told || this.#silent !== present.token)
            this.#node.log(election, `${present.peer} does not answer: I wait until its lease has ended`);
          this.#silent = present.token;
          await sleep(clock, Math.min(YIELD_MS * 5, silentUntil - clock.now()), signal);
        } else if (yielding.length > 0) await sleep(clock, YIELD_MS, signal);
        else if (highest > token || [...replies.values()].some(({ yes }) => !yes))
          this.#room.highest = max(highest, this.#room.highest);
        else if (clock.now() - asked.now < ttlMs / 2)
          return this.#open({ ...note, endsAt: asked.now + ttlMs, revoked: new StopSource() }, asked);
        signal.throwIfAborted();
      }
    } catch (error) {
      await this.#withdraw(token);
      throw error;
    }
  }

  /** A higher peer that has said that it leads. */
  #stronger(): string | undefined {
    const leader = this.#room.leader;
    return leader !== null && this.#node.isHigher(leader.peer) ? leader.peer : undefined;
  }

  #open(lead: Lead, asked: ReturnType<typeof readClocks>): BullyHold {
    this.#room.open(lead);
    const hold = new BullyHold(this.#node, this.#candidacy, lead, asked);
    hold.tell();
    return hold;
  }

  /** So that nobody waits for a term that did not open. */
  async #withdraw(token: bigint): Promise<void> {
    const { election } = this.#candidacy;
    await this.#node.askAll(this.#node.others, { kind: "release", election, token }, this.#answerMs / 2);
  }

  async #pause(ms: number): Promise<void> {
    await this.#node.changed(this.#candidacy.election, Math.max(1, ms), this.#options.signal);
  }
}

function max(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}
