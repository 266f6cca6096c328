/** What befalls voters in a race: two hands, one for processes and disks, one for links, which do not wait for each other. */
import type { Fleet } from "./fleet.js";
import { TTL_MS } from "./fleet.js";

const PROCESSES = ["kill", "stop", "wiped-disk", "full-disk"] as const;
const LINKS = ["cannot-send", "cannot-hear", "one-link", "cut-off", "split"] as const;
export const KINDS = [...PROCESSES, ...LINKS] as const;
type Kind = (typeof KINDS)[number];

/** Until a voter is started and takes part again: a second, and a minute on a machine with too much else to do. */
const REJOIN_MS = 120_000;
const LEADER_MS = 60_000;
/** How long links may go on breaking while a voter wants to hear from all others. */
const LENIENCE_MS = 2_000;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const between = (least: number, most: number): number => least + Math.random() * (most - least);
const monotonic = (): string => `${process.hrtime.bigint()}`;

export class Mishaps {
  readonly #fleet: Fleet;
  readonly #log: (event: object) => void;
  /** Since when a voter waits for all others; links are left whole after a while. */
  #waitingSince: number | undefined;

  constructor(fleet: Fleet, log: (event: object) => void) {
    this.#fleet = fleet;
    this.#log = log;
  }

  async run(count: number): Promise<void> {
    const fleet = this.#fleet;
    const all = Array.from({ length: fleet.count }, (_, index) => index);
    await fleet.until("all voters take part", REJOIN_MS, () => all.every((index) => fleet.isWhole(index)));
    await this.#someoneLeads();
    const half = Math.round(count / 2);
    await Promise.all([
      this.#hand(deal(PROCESSES, half), (kind) => this.#process(kind)),
      this.#hand(deal(LINKS, count - half), (kind) => this.#link(kind)),
    ]);
    await fleet.until("all are whole again", REJOIN_MS, () => all.every((index) => fleet.isWhole(index)));
    this.#log({ ev: "heal", el: fleet.election, t: monotonic(), boundMs: LEADER_MS });
    await this.#someoneLeads();
    await pause(300);
  }

  async #hand<K extends Kind>(kinds: readonly K[], strike: (kind: K) => Promise<number>): Promise<void> {
    for (const kind of kinds) {
      await pause(between(0, TTL_MS));
      const t0 = monotonic();
      const { leader } = this.#fleet;
      const inc = leader === undefined ? "nobody" : this.#fleet.inc(leader);
      const victim = await strike(kind);
      const hit = victim === leader ? inc : this.#fleet.inc(victim);
      this.#log({ ev: "fault", kind, el: this.#fleet.election, inc: hit, t0, t1: monotonic() });
    }
  }

  /** The leader more often than others. */
  #victim(): number {
    const { leader, count } = this.#fleet;
    return leader !== undefined && Math.random() < 0.6 ? leader : Math.floor(Math.random() * count);
  }

  async #process(kind: (typeof PROCESSES)[number]): Promise<number> {
    const fleet = this.#fleet;
    const victim = this.#victim();
    if (kind === "stop") {
      fleet.freeze(victim);
      await pause(between(0.3, 1.7) * TTL_MS);
      fleet.thaw(victim);
      return victim;
    }
    if (kind === "full-disk") {
      // Half of them meet the full disk while they run, the others when they start.
      const before = Math.random() < 0.5;
      if (before) await fleet.kill(victim);
      fleet.fill(victim);
      if (before) fleet.start(victim);
      await pause(between(0.5, 1.5) * TTL_MS);
    }
    await fleet.kill(victim);
    if (kind === "wiped-disk") await fleet.wipe(victim);
    if (kind === "full-disk") fleet.empty(victim);
    if (Math.random() < 0.5) await pause(between(0, 1.5) * TTL_MS);
    fleet.start(victim);
    await this.#back(victim);
    return victim;
  }

  /** Two voters without a past would wait for each other for ever: that needs an operator, and is tested elsewhere. */
  async #back(victim: number): Promise<void> {
    this.#waitingSince = performance.now();
    await this.#fleet.until(`voter ${victim + 1} is back`, REJOIN_MS, () => this.#fleet.isWhole(victim));
    this.#waitingSince = undefined;
  }

  async #link(kind: (typeof LINKS)[number]): Promise<number> {
    const fleet = this.#fleet;
    await fleet.until("links may break again", 2 * REJOIN_MS, () => {
      const since = this.#waitingSince;
      return since === undefined || performance.now() - since < LENIENCE_MS;
    });
    const victim = this.#victim();
    const cuts = this.#cutsOf(kind, victim);
    await fleet.cut(cuts, true);
    await pause(between(0.3, 2.5) * TTL_MS);
    await fleet.cut(cuts, false);
    return victim;
  }

  #cutsOf(kind: (typeof LINKS)[number], victim: number): [number, number][] {
    const all = Array.from({ length: this.#fleet.count }, (_, index) => index);
    const others = all.filter((index) => index !== victim);
    const out = others.map((other): [number, number] => [victim, other]);
    const into = others.map((other): [number, number] => [other, victim]);
    const one = Math.floor(Math.random() * others.length);
    switch (kind) {
      case "cannot-send":
        return out;
      case "cannot-hear":
        return into;
      case "one-link":
        return [Math.random() < 0.5 ? out[one]! : into[one]!];
      case "cut-off":
        return [...out, ...into];
      case "split": {
        const few = new Set([victim, ...shuffled(others).slice(0, (all.length - 1) / 2 - 1)]);
        return all.flatMap((a) =>
          all.filter((b) => few.has(a) !== few.has(b)).map((b): [number, number] => [a, b]),
        );
      }
    }
  }

  async #someoneLeads(): Promise<void> {
    await this.#fleet.until("someone leads", LEADER_MS, () => this.#fleet.leader !== undefined);
  }
}

/** Each kind equally often, in any order. */
function deal<K>(kinds: readonly K[], count: number): K[] {
  return shuffled(Array.from({ length: count }, (_, index) => kinds[index % kinds.length]!));
}

function shuffled<T>(items: readonly T[]): T[] {
  return items
    .map((item) => ({ item, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
}
