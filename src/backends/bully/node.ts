/** A peer as a whole: its rooms, the door for others, and links to them. */
import { ConclaveError } from "../../kit/errors.js";
import { StopSource } from "../../kit/stop.js";
import type { Stop } from "../../kit/stop.js";
import type { Clock } from "../../seam/clock.js";
import { Link } from "../raft/transport/link.js";
import { Door } from "../raft/transport/server.js";
import { Watchers } from "../raft/watchers.js";
import { decodeMessage, decodeReply, encode } from "./messages.js";
import type { Message, Reply } from "./messages.js";
import type { BullyConfig } from "./options.js";
import { Room } from "./room.js";

/** A message without what every message of this process has. */
export type Outgoing = Message extends infer M
  ? M extends Message
    ? Omit<M, "from" | "life">
    : never
  : never;

const NO_ROOM = { up: false, yes: true, leader: null, highest: 0n };

export class BullyNode {
  readonly clock: Clock;
  readonly name: string;
  readonly preempt: boolean;
  /** All other peers, the lowest first. */
  readonly others: readonly string[];
  readonly #log: (line: string) => void;
  readonly #config: BullyConfig;
  readonly #life: string;
  readonly #rooms = new Map<string, Room>();
  readonly #links = new Map<string, Link>();
  readonly #watchers: Watchers;
  readonly #door: Door | undefined;
  /** Starts of each peer: the present one, and those before it. */
  readonly #lives = new Map<string, { now: string; before: Set<string> }>();
  readonly #stop = new StopSource();
  #started: Promise<void> | undefined;
  #twin: ConclaveError | undefined;

  constructor(config: BullyConfig, clock: Clock, log: (line: string) => void) {
    this.#config = config;
    this.clock = clock;
    this.#log = log;
    this.#life = clock.uniqueId();
    this.preempt = config.preempt;
    this.#watchers = new Watchers(clock);
    const { self, peers, cluster, list, secret, dial } = config;
    this.name = self?.name ?? `client:${clock.uniqueId()}`;
    this.others = peers.map(({ name }) => name).filter((name) => name !== this.name);
    const own = { name: this.name, voter: self !== undefined, cluster, list, secret };
    for (const peer of peers)
      if (peer.name !== this.name)
        this.#links.set(peer.name, new Link(own, peer.name, dial[peer.name] ?? peer, clock));
    if (self === undefined) return;
    this.#door = new Door({
      own,
      voters: new Set(peers.map(({ name }) => name)),
      clock,
      log,
      handle: (body) => {
        const message = decodeMessage(body);
        return message === undefined ? undefined : Promise.resolve(encode(this.#handle(message)));
      },
    });
  }

  /** Listens, if this process is a peer. */
  start(): Promise<void> {
    const { bind } = this.#config;
    this.#started ??= bind === undefined ? Promise.resolve() : this.#door?.listen(bind);
    return this.#started ?? Promise.resolve();
  }

  /** 0 is the lowest. */
  rank(name: string): number {
    return this.#config.peers.findIndex((peer) => peer.name === name);
  }

  isHigher(name: string): boolean {
    return this.rank(name) > this.rank(this.name);
  }

  log(election: string, line: string): void {
    this.#log(`${this.name}, "${election}": ${line}`);
  }

  room(election: string): Room {
    const known = this.#rooms.get(election);
    if (known !== undefined) return known;
    const room = new Room({
      clock: this.clock,
      self: this.#config.self?.name,
      rank: (name) => this.rank(name),
      preempt: this.preempt,
      wake: () => this.#watchers.wake(election),
      log: (line) => this.log(election, line),
    });
    this.#rooms.set(election, room);
    return room;
  }

  /** Until something changes in the room, at most so long. */
  changed(election: string, withinMs: number, stop: Stop): Promise<void> {
    return this.#watchers.wait(election, withinMs, stop);
  }

  wake(election: string): void {
    this.#watchers.wake(election);
  }

  /** Asks one peer. Rejects when no answer came in time. */
  async ask(peer: string, message: Outgoing, limitMs: number): Promise<Reply> {
    const link = this.#links.get(peer);
    if (link === undefined) throw new ConclaveError("state", `"${peer}" is no other peer`);
    const whole = { ...message, from: this.name, life: this.#life };
    const reply = decodeReply(await link.ask(encode(whole), limitMs));
    if (reply === undefined)
      throw new ConclaveError("unavailable", `peer "${peer}" answered something unreadable`);
    if (reply.twin === true) this.#meetTwin();
    return reply;
  }

  /** Asks many at once. Those that do not answer in time are missing. */
  async askAll(
    peers: readonly string[],
    message: Outgoing | ((peer: string) => Outgoing),
    limitMs: number,
  ): Promise<Map<string, Reply>> {
    const replies = new Map<string, Reply>();
    const to = typeof message === "function" ? message : (): Outgoing => message;
    const asked = peers.map(async (peer) => replies.set(peer, await this.ask(peer, to(peer), limitMs)));
    await Promise.allSettled(asked);
    return replies;
  }

  /** Throws if this peer cannot take part any more. */
  assertAlone(): void {
    if (this.#twin !== undefined) throw this.#twin;
  }

  async close(): Promise<void> {
    if (this.#stop.aborted) return;
    this.#stop.stop();
    this.#watchers.close();
    for (const link of this.#links.values()) link.close();
    await this.#started?.catch(() => {});
    await this.#door?.close();
  }

  #handle(message: Message): Reply {
    const { election, from, kind } = message;
    if (this.#hasTwin(message)) return { ...NO_ROOM, yes: false, twin: true };
    const room = this.#rooms.get(election);
    if (kind === "coordinator") {
      const opened = this.room(election);
      const answer = opened.coordinator(message);
      return { ...this.#reply(opened), ...answer };
    }
    if (room === undefined) return NO_ROOM;
    if (kind === "release") room.released(from, message.token);
    if (kind === "election") {
      const { up } = this.#reply(room);
      this.log(election, `ELECTION from ${from}${up ? `; ANSWER to ${from}: I am higher` : ""}`);
      if (up) this.wake(election);
    }
    return this.#reply(room);
  }

  #reply(room: Room): Reply {
    const up = room.standing > 0 || (room.lead !== undefined && !room.lead.revoked.aborted);
    return { up, yes: true, leader: room.leader, highest: room.highest };
  }

  /** A start that came back after another one: two processes use the name. */
  #hasTwin({ from, life }: Message): boolean {
    if (this.rank(from) < 0) return false;
    const known = this.#lives.get(from);
    if (known === undefined) this.#lives.set(from, { now: life, before: new Set() });
    else if (known.before.has(life)) {
      known.before.add(known.now); // the other one is refused as well
      this.#log(`two processes say that they are "${from}"; neither takes part`);
      return true;
    } else if (known.now !== life) {
      known.before.add(known.now);
      known.now = life;
    }
    return from === this.name && life !== this.#life;
  }

  #meetTwin(): void {
    if (this.#twin !== undefined) return;
    this.#twin = new ConclaveError(
      "conflict",
      `another process also says that it is "${this.name}"; every peer needs an id of its own. Stop one of them and start the other again`,
    );
    this.#log(this.#twin.message);
    for (const [election, room] of this.#rooms) {
      room.revoke("two processes have this peer's id");
      this.wake(election);
    }
  }
}
