/**
 * What one sidecar knows of one election, and for how long that may be relied on.
 * Nothing here is a flag: every answer is computed from the clock when it is
 * given, so a sidecar that was frozen, or cut off from its store, says "unknown"
 * and not what was true before.
 */
import type { Leader } from "../seam/backend.js";
import type { Clock } from "../seam/clock.js";
import type { Election } from "../election/election.js";
import { onAbort, sleep } from "../kit/wait.js";
import { RosterView } from "./roster-view.js";
import type { WireElection } from "./protocol.js";
import { wireLeader } from "./protocol.js";

interface Sighting {
  readonly leader: Leader | null;
  /** Just before the store was asked. */
  readonly askedAt: number;
}

export class ElectionView {
  readonly election: Election;
  readonly #clock: Clock;
  readonly #observer: boolean;
  readonly #closing = new AbortController();
  readonly #changed = new Set<() => void>();
  readonly #offs: (() => void)[];
  readonly #following: Promise<unknown>;
  #sighting: Sighting | undefined;
  /** Aborted to ask at once. */
  #pause = new AbortController();
  #jeopardy = false;
  readonly #roster: RosterView;

  /** `observer`: the election is only looked at; there is no candidate. */
  constructor(election: Election, clock: Clock, observer = false) {
    this.election = election;
    this.#observer = observer;
    this.#clock = clock;
    this.#roster = new RosterView(election, clock);
    const jeopardy = (on: boolean) => () => {
      this.#jeopardy = on;
      this.#tell();
    };
    this.#offs = [
      election.on("elected", jeopardy(false)),
      election.on("jeopardy", jeopardy(true)),
      election.on("safe", jeopardy(false)),
      election.on("ended", jeopardy(false)),
    ];
    this.#following = Promise.all([this.#follow(), this.#ask()]);
  }

  /** The state now, or `null`: not known, or not known recently enough. */
  state(): WireElection | null {
    const { election } = this;
    const { name, candidate, timing, term } = election;
    const observer = this.#observer ? { observer: true } : {};
    const base = {
      election: name,
      backend: election.backend.name,
      candidate,
      ttlMs: timing.ttlMs,
      ...observer,
      ...this.#roster.state(),
    };
    const remainingMs = term?.remainingMs ?? 0;
    if (term !== undefined && remainingMs > 0) {
      const leader = wireLeader({ candidate, token: term.token, value: term.value, since: term.since });
      return {
        ...base,
        leading: true,
        jeopardy: this.#jeopardy,
        leader,
        validForMs: Math.floor(remainingMs),
      };
    }
    const sighting = this.#sighting;
    if (sighting === undefined) return null;
    const validForMs = Math.floor(sighting.askedAt + timing.ttlMs - this.#clock.now());
    if (validForMs <= 0) return null;
    // The store may still name us after our own deadline: we know better, and who follows is not known yet.
    const leader = sighting.leader?.candidate === candidate ? null : wireLeader(sighting.leader);
    return { ...base, leading: false, jeopardy: false, leader, validForMs };
  }

  /** Leading, but the last renewals failed. */
  get endangered(): boolean {
    return this.#jeopardy && this.election.leading;
  }

  /** Whether the store has answered recently enough to say anything. */
  get informed(): boolean {
    return this.state() !== null;
  }

  onChange(listener: () => void): () => void {
    this.#changed.add(listener);
    return () => this.#changed.delete(listener);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    for (const off of this.#offs) off();
    this.#changed.clear();
    await this.#following;
  }

  /** What the store pushes may be old when it arrives: it only makes us ask. */
  async #follow(): Promise<void> {
    const { signal } = this.#closing;
    for await (const leader of this.election.observe({ signal })) {
      if (this.#sighting !== undefined && sameLeader(leader, this.#sighting.leader)) continue;
      this.#pause.abort();
    }
  }

  /** Asks, and asks again: that nothing changed is news too, for without a fresh answer the old one runs out. */
  async #ask(): Promise<void> {
    const { signal } = this.#closing;
    const everyMs = this.election.timing.ttlMs / 3;
    while (!signal.aborted) {
      this.#pause = new AbortController();
      const askedAt = this.#clock.now();
      try {
        this.#saw({ leader: await this.election.leader({ signal }), askedAt });
      } catch {
        // Not known: the last sighting runs out by itself. The election reports the error.
      }
      // Beside the questions who leads: those wait for nothing.
      const looked = this.#roster.look(signal).then((changed) => changed && this.#tell());
      const unlink = onAbort(signal, () => this.#pause.abort());
      await sleep(this.#clock, everyMs * (0.9 + 0.1 * this.#clock.random()), this.#pause.signal);
      unlink();
      await looked;
    }
  }

  #saw(sighting: Sighting): void {
    const before = this.#sighting;
    this.#sighting = sighting;
    if (before === undefined || !sameLeader(before.leader, sighting.leader)) this.#tell();
  }

  #tell(): void {
    for (const listener of this.#changed) listener();
  }
}

function sameLeader(a: Leader | null, b: Leader | null): boolean {
  return a?.token === b?.token && a?.candidate === b?.candidate && a?.value === b?.value;
}
